#!/bin/sh
# Prints the script that CREATE EXTENSION executes: the files of sql/install.list, in that order.
set -eu
list=sql/install.list

# printf, not echo: some shells' echo interprets the backslashes.
printf '%s\n' '\echo Use "CREATE EXTENSION synchro" to load this file. \quit'
sed 's/#.*//; s/[[:space:]]*$//; s/^[[:space:]]*//; /^$/d' "$list" | while IFS= read -r name; do
	[ -f "sql/$name" ] || { printf '%s names sql/%s, which does not exist\n' "$list" "$name" >&2; exit 1; }
	printf '\n-- %s\n' "$name"
	cat "sql/$name"
	printf '\n'
done
