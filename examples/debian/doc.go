// Package debian is an example on real data: the package archive that the machine's own apt knows, synced to packaging
// teams.
//
// A package belongs to the scope of the team that maintains it and to the scope of its section. A team follows sections
// (table follow, read by the assignment function) and writes notes about packages (table note, push enabled). The tables,
// policies and functions are in sql/, commented; the demo in demo/.
package debian
