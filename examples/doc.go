// Package examples holds no code of its own: its tests run the examples and keep the README true.
package examples
