# What becomes of single paths: modes, owners, links, names, and the repository as a whole.
package puzzled.commit

# --- modes, owners, types ---------------------------------------------------------------------------------------

findings contains {
	"rule": "setuid",
	"severity": setuid_severity,
	"message": "would run with the rights of its owner or group",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.setuid
}

findings contains {
	"rule": "capabilities",
	"severity": setuid_severity,
	"message": "carries file capabilities or another security attribute",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.security
}

setuid_severity := "medium" if input.settings.allowSetuid == true

else := "critical"

findings contains {
	"rule": "owner",
	"severity": "high",
	"message": sprintf("owner would be %d:%d, the requester is %d", [change.new.uid, change.new.gid, input.branch.requester.uid]),
	"path": change.target,
} if {
	some i in input.index.flags.owner
	change := input.changes[i]
}

findings contains {
	"rule": "world-writable",
	"severity": "medium",
	"message": "everybody on this machine could write it",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.worldWritable
}

findings contains {
	"rule": "native-executable",
	"severity": native_severity(change),
	"message": "is machine code, which no reviewer can read",
	"path": change.target,
} if {
	some i in input.index.flags.native
	change := input.changes[i]
}

native_severity(change) := "low" if {
	some directory in {"node_modules", "target", "build", "dist", ".venv", "venv", "out", "bin", "obj", "__pycache__", ".next", "vendor"}
	contains(change.target, concat("", ["/", directory, "/"]))
}

else := "medium"

findings contains {
	"rule": "executable",
	"severity": "low",
	"message": "becomes executable",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.becomesExecutable
}

findings contains {
	"rule": "unread-executable",
	"severity": "medium",
	"message": "is executable and its content was not examined",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.unreadExecutable
}

findings contains {
	"rule": "unread",
	"severity": "medium",
	"message": sprintf("content could not be examined: %s", [change.unscanned]),
	"path": change.target,
} if {
	some i in input.index.flags.unread
	change := input.changes[i]
}

# --- links ------------------------------------------------------------------------------------------------------

findings contains {
	"rule": "symlink-outside",
	"severity": link_severity(change.new.resolved),
	"message": sprintf("links to \"%s\", outside of the base", [change.new.link]),
	"path": change.target,
} if {
	some i in input.index.flags.linkOutside
	change := input.changes[i]
}

# Virtual environments and tool shims link to installed programs; those are read-only for everybody.
link_severity(resolved) := "low" if {
	some root in {"/usr/bin/", "/usr/lib/", "/usr/share/", "/usr/local/bin/", "/usr/local/lib/", "/bin/", "/lib/", "/opt/", "/nix/store/"}
	startswith(resolved, root)
}

else := "high"

# --- names ------------------------------------------------------------------------------------------------------

findings contains {
	"rule": "deceptive-name",
	"severity": "high",
	"message": "the name has control, direction or invisible characters: it is not what it looks like",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.deceptive
}

findings contains {
	"rule": "name-not-text",
	"severity": "medium",
	"message": "the name is not UTF-8",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.notText
}

findings contains {
	"rule": "name-collision",
	"severity": "medium",
	"message": sprintf("differs only in case or form from \"%s\"", [input.changes[other].target]),
	"path": input.changes[i].target,
} if {
	some [i, other] in input.index.collisions
}

# --- git as a whole ---------------------------------------------------------------------------------------------

findings contains {
	"rule": "planted-repository",
	"severity": "high",
	"message": "a bare repository inside the tree: git takes its configuration and hooks from there",
	"path": input.changes[i].target,
} if {
	some [i, d] in input.index.names.head
	directory := input.index.directories[d].path
	not contains(concat("", [directory, "/"]), "/.git/")
	not input.changes[i].kind == "delete"
	some other in {"objects", "refs", "hooks"}
	some number in input.index.segments[other]
	startswith(concat("", [input.index.directories[number].path, "/"]), concat("/", [directory, other, ""]))
}

findings contains {
	"rule": "history-deleted",
	"severity": "high",
	"message": "the repository would lose its history",
	"path": input.changes[i].target,
} if {
	some [i, d] in input.index.names.head
	endswith(input.index.directories[d].path, "/.git")
	input.changes[i].kind == "delete"
}
