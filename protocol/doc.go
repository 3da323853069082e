// Package protocol holds the wire types of the sync protocol, their strict
// decoders, and the one table of errors (errcodes.txt), from which the C
// header, the Go table and the documentation page are generated.
package protocol

//go:generate go run ./gen -root ..
