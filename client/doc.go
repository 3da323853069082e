// Package client speaks the sync protocol from the client's side. Client sends
// single requests; Session keeps the state of one client, verifies every row
// and every scope digest, and remembers identities, digests and versions, not
// row contents.
package client
