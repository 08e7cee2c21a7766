# What becomes of a changeset. The gate asks for `decision`; everything that is not understood is denied by the
# caller: an undefined result, another shape, a trap, a timeout.
#
# A finding is {rule, severity, message, path?, help?}. Severity decides: critical = deny, high and medium = hold,
# low and info = warn. `policies/lib/vectors.rego` is the catalogue of execution and persistence vectors.
package puzzled.commit

import data.puzzled.content
import data.puzzled.vectors

decision := {
	"version": 1,
	"allow": (count(denied) + count(held)) == 0,
	"deny": capped(denied),
	"hold": capped(held),
	"warn": capped(warned),
	"tier": tier,
	"obligations": sort(obligations),
}

denied := [finding | some finding in findings; finding.severity == "critical"]

held := [finding | some finding in findings; finding.severity in {"high", "medium"}]

warned := [finding | some finding in findings; finding.severity in {"low", "info"}]

tier := "forbidden" if count(denied) > 0

else := "approval_required" if count(held) > 0

else := "auto_notify" if count(warned) > 0

else := "auto"

obligations contains "notify" if tier == "auto_notify"

obligations contains "review-content" if {
	some finding in held
	finding.severity == "high"
}

obligations contains "strip-setuid" if {
	some finding in findings
	finding.rule in {"setuid", "capabilities"}
	finding.severity != "critical"
}

# No rule may drown the others: the reviewer is told how many more there are.
per_rule := 50

capped(list) := array.concat(shown, more) if {
	groups := {finding.rule: [same | some same in list; same.rule == finding.rule] | some finding in list}
	shown := [finding | some group in groups; some finding in array.slice(group, 0, per_rule)]
	more := [summary |
		some rule, group in groups
		count(group) > per_rule
		summary := {
			"rule": rule,
			"severity": worst(group),
			"message": sprintf("%d more findings of this rule are not listed", [count(group) - per_rule]),
		}
	]
}

worst(group) := severity if {
	highest := max([vectors.order[finding.severity] | some finding in group])
	some severity, rank in vectors.order
	rank == highest
}

# --- the catalogue ----------------------------------------------------------------------------------------------

findings contains {
	"rule": concat("/", ["vector", id]),
	"severity": vector_severity(vector, i),
	"message": sprintf("%s: %s", [verb(input.changes[i]), vector.why]),
	"path": input.changes[i].target,
} if {
	some [id, i] in vectors.hits
	vector := vectors.catalogue[id]
}

verb(change) := "would be created" if change.old == null

else := "would be changed"

vector_severity(vector, i) := vector.clean if content.clean(vector, i)

else := vector.severity

# --- what the diff found ----------------------------------------------------------------------------------------

findings contains {
	"rule": concat("/", ["changeset", found.rule]),
	"severity": "critical",
	"message": found.message,
	"path": change.target,
} if {
	some i in input.index.flags.findings
	change := input.changes[i]
	some found in change.findings
}

findings contains {
	"rule": concat("/", ["content", found.rule]),
	"severity": content.severity(found, i),
	"message": found.message,
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.content
	some found in input.changes[i].content
	content.severity(found, i)
}

# What people read.
amount(1) := "1 byte"

amount(bytes) := sprintf("%d bytes", [bytes]) if bytes != 1

# --- size -------------------------------------------------------------------------------------------------------

findings contains {
	"rule": "mass-deletion",
	"severity": "high",
	"message": sprintf("%d paths would be deleted; the profile allows %d without a person", [input.totals.deletions, input.settings.maxDeletions]),
} if {
	input.totals.deletions > input.settings.maxDeletions
}

findings contains {
	"rule": "many-files",
	"severity": "medium",
	"message": sprintf("%d paths would change; the profile allows %d without a person", [input.totals.files, input.settings.maxFiles]),
} if {
	input.totals.files > input.settings.maxFiles
}

findings contains {
	"rule": "many-bytes",
	"severity": "medium",
	"message": sprintf("%s would be written; the profile allows %d without a person", [amount(input.totals.bytes), input.settings.maxBytes]),
} if {
	input.totals.bytes > input.settings.maxBytes
}

# --- what the profile says --------------------------------------------------------------------------------------

findings contains {
	"rule": concat("-", ["profile", rule.action]),
	"severity": {"deny": "critical", "hold": "high"}[rule.action],
	"message": sprintf("%s (%s)", [rule.why, rule.pattern]),
	"path": input.changes[i].target,
} if {
	some rule in input.settings.paths
	some i in rule.changes
}

findings contains {
	"rule": "agent-failed",
	"severity": "medium",
	"message": sprintf("the agent did not end well: %s", [input.branch.exit.summary]),
} if {
	input.settings.onAgentFailure == "hold"
	input.branch.exit.good == false
}

# --- requests ---------------------------------------------------------------------------------------------------

findings contains {
	"rule": "queued-request",
	"severity": "medium",
	"message": sprintf("%s %s%s (%s) would be sent", [request.method, request.host, request.path, amount(request.bytes)]),
} if {
	some request in input.requests
}

# --- form -------------------------------------------------------------------------------------------------------

findings contains {
	"rule": "input-version",
	"severity": "critical",
	"message": "the input document is not of version 1",
} if {
	not input.version == 1
}

# The index is how the rules see the changes: one of something else would hide them.
findings contains {
	"rule": "input-index",
	"severity": "critical",
	"message": "the index of the input document does not belong to its changes",
} if {
	not consistent
}

consistent if {
	input.index.count == count(input.changes)
	is_object(input.index.names)
	is_object(input.index.extensions)
	is_object(input.index.segments)
	is_object(input.index.flags)
	is_array(input.index.directories)
	is_array(input.index.collisions)
	is_array(input.requests)
	is_array(input.settings.paths)
	is_number(input.settings.maxDeletions)
	is_number(input.settings.maxFiles)
	is_number(input.settings.maxBytes)
	is_number(input.totals.deletions)
	is_number(input.totals.files)
	is_number(input.totals.bytes)
}

findings contains {
	"rule": "many-names",
	"severity": "high",
	"message": "links of this changeset give it more names than can be judged",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.manyNames
}

findings contains {
	"rule": "contents-unread",
	"severity": "low",
	"message": "contents were not available: only names, types, modes and owners were judged",
} if {
	input.contents.available == false
}

findings contains {
	"rule": "contents-partly-read",
	"severity": "low",
	"message": sprintf("%d files were not examined to their end", [input.contents.partly]),
} if {
	input.contents.partly > 0
}

findings contains {
	"rule": "system-path",
	"severity": "high",
	"message": "belongs to the system, not to a project",
	"path": input.changes[i].target,
} if {
	some i in input.index.flags.system
}
