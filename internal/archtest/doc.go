// Package archtest holds no code: its tests keep the rules of the project's layout that a compiler doesn't.
package archtest
