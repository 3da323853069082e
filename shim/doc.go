// Package shim is the HTTP side of the server: it authenticates a request, checks its shape, calls the one database
// function of its route, and forwards that function's status and body unchanged. It holds no state: run as many as wanted.
package shim
