# What the content scanner's findings weigh. A rule that is not in the table is high: a scanner that knows more than
# this policy must not be heard less.
package puzzled.content

weights := {
	"private-key": "high",
	"access-token": "high",
	"password-in-url": "medium",
	"high-entropy": "medium",
	"encoded-blob": "medium",
	"long-line": "low",
	"direction-control": "high",
	"invisible-text": "medium",
	"terminal-escape": "medium",
	"lockfile-host": "high",
	"lockfile-plain-http": "high",
	"lockfile-integrity": "medium",
	"lifecycle-script": "high",
	"script-changed": "low",
	"git-config-command": "high",
	"git-config-remote": "medium",
	"git-attributes-driver": "high",
	"git-attributes-hidden": "medium",
	"pipe-to-shell": "low",
	"unreadable": "medium",
}

severity(found, _) := object.get(weights, found.rule, "high")

# A vector that the scanner understands is as harmless as a clean scan says; unscanned is not clean.
clean(vector, i) if {
	vector.content
	change := input.changes[i]
	change.scanned == true
	not flagged(change, vector.content)
}

flagged(change, family) if {
	some found in change.content
	startswith(found.rule, family)
}
