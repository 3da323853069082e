// Package debian is an example on real data: the package archive that the machine's own apt knows, synced to packaging
// teams.
//
// A package belongs to the scope of the team that maintains it and to the scope of its section; what it needs (table
// dependency) is where the package is, and moves with it. A team follows sections (table follow, read by the assignment
// function), writes notes about packages (table note, push enabled) and works on the tasks of the teams that it is a
// member of, while these are active (tables team and team_member, which decide and are not synced themselves). The tables,
// policies and functions are in sql/, commented; the demo in demo/.
package debian
