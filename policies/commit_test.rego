package puzzled.commit_test

import data.puzzled.commit
import data.puzzled.content
import data.puzzled.vectors

# An input document with one added file; tests lay their own parts over it.
document(target, overlay) := object.union(
	{
		"version": 1,
		"branch": {"requester": {"uid": 1000}, "exit": {"good": true, "summary": "exit status 0"}},
		"settings": {"allowSetuid": false, "maxFiles": 10, "maxBytes": 1000, "maxDeletions": 5, "onAgentFailure": "hold", "paths": []},
		"totals": {"files": 1, "bytes": 10, "additions": 1, "modifications": 0, "deletions": 0},
		"requests": [],
		"contents": {"available": true, "examined": 1, "partly": 0},
		"index": index(target),
		"changes": [{"target": target, "name": name(target), "kind": "add", "old": null, "new": {"type": "file", "mode": 420, "uid": 1000, "gid": 1000, "size": 1}}],
	},
	overlay,
)

name(target) := parts[count(parts) - 1] if parts := split(target, "/")

directory(target) := concat("/", array.slice(parts, 0, count(parts) - 1)) if parts := split(target, "/")

index(target) := {
	"count": 1,
	"names": {name(target): [[0, 0]]},
	"extensions": {},
	"segments": {segment: [0] | some segment in split(directory(target), "/"); segment != ""},
	"directories": [{"path": directory(target), "changes": [0]}],
	"flags": {},
	"collisions": [],
}

rules(list) := {finding.rule | some finding in list}

test_ordinary_file_is_allowed if {
	decision := commit.decision with input as document("/home/u/app/src/main.ts", {})
	decision.allow
	decision.tier == "auto"
	(count(decision.deny) + count(decision.hold)) + count(decision.warn) == 0
}

test_hook_is_held if {
	decision := commit.decision with input as document("/home/u/app/.git/hooks/pre-commit", {})
	not decision.allow
	rules(decision.hold) == {"vector/git-hook"}
	decision.tier == "approval_required"
}

test_git_objects_are_allowed if {
	every path in {"objects/ab/cdef", "refs/heads/main", "index", "HEAD", "logs/HEAD", "COMMIT_EDITMSG", "packed-refs"} {
		decision := commit.decision with input as document(concat("/", ["/home/u/app/.git", lower(path)]), {})
		decision.allow
	}
}

test_directory_names_match_on_borders if {
	decision := commit.decision with input as document("/home/u/app/x.git/hooks/a", {})
	decision.allow
}

test_authorized_keys_are_denied if {
	decision := commit.decision with input as document("/home/u/.ssh/authorized_keys", {})
	rules(decision.deny) == {"vector/ssh-keys"}
	decision.tier == "forbidden"
}

test_system_roots_are_absolute if {
	commit.decision.allow with input as document("/home/u/app/etc/cron.d/backup", {})
	denied := commit.decision with input as document("/etc/cron.d/backup", {})
	rules(denied.deny) == {"vector/cron"}
	crontab := commit.decision with input as document("/etc/crontab", {})
	rules(crontab.deny) == {"vector/cron"}
}

test_mass_deletion_is_held if {
	decision := commit.decision with input as document("/home/u/app/a", {"totals": {"files": 6, "bytes": 0, "deletions": 6}})
	rules(decision.hold) == {"mass-deletion"}
}

test_requests_say_how_much_they_carry if {
	request := {"id": "r", "method": "POST", "host": "h", "path": "/p", "class": "queue"}
	said := {finding.message |
		some bytes in [0, 1, 2]
		decision := commit.decision with input as document("/home/u/app/a", {"requests": [object.union(request, {"bytes": bytes})]})
		some finding in decision.hold
	}
	said == {"POST h/p (0 bytes) would be sent", "POST h/p (1 byte) would be sent", "POST h/p (2 bytes) would be sent"}
}

test_setuid_is_denied_unless_the_profile_allows_it if {
	denied := commit.decision with input as document("/home/u/app/a", {"index": {"flags": {"setuid": [0]}}})
	rules(denied.deny) == {"setuid"}
	held := commit.decision with input as document("/home/u/app/a", {"index": {"flags": {"setuid": [0]}}, "settings": {"allowSetuid": true}})
	rules(held.hold) == {"setuid"}
	held.obligations == ["strip-setuid"]
}

test_unknown_content_rule_is_high if {
	content.severity({"rule": "from-the-future"}, 0) == "high"
}

test_another_version_is_denied if {
	decision := commit.decision with input as document("/home/u/app/a", {"version": 2})
	rules(decision.deny) == {"input-version"}
}

test_index_of_something_else_is_denied if {
	decision := commit.decision with input as document("/home/u/app/a", {"index": {"count": 2}})
	rules(decision.deny) == {"input-index"}
	empty := commit.decision with input as {}
	not empty.allow
}

test_one_rule_does_not_drown_the_others if {
	many := [finding | some n in numbers.range(1, 60); finding := {"rule": "r", "severity": "low", "message": sprintf("%d", [n])}]
	listed := commit.capped(array.concat(many, [{"rule": "s", "severity": "high", "message": "x"}]))
	count(listed) == 52
	rules(listed) == {"r", "s"}
}

# The catalogue is data; these are its rules.

test_catalogue_is_large_enough if count(vectors.catalogue) >= 60

test_names_of_the_catalogue_are_folded if {
	every vector in vectors.catalogue {
		every key in {"names", "tails", "dirs", "roots", "extensions", "except", "only"} {
			every text in object.get(vector, key, []) {
				text == lower(text)
				not endswith(text, "/")
			}
		}
	}
}

test_every_vector_has_a_known_severity_and_a_reason if {
	every vector in vectors.catalogue {
		vectors.order[vector.severity] >= 0
		count(vector.why) > 10
	}
}

test_roots_are_absolute_and_the_others_are_not if {
	every vector in vectors.catalogue {
		every root in object.get(vector, "roots", []) { startswith(root, "/") }
		every dir in object.get(vector, "dirs", []) { not startswith(dir, "/") }
		every tail in object.get(vector, "tails", []) { not startswith(tail, "/") }
		every text in object.get(vector, "names", []) { not contains(text, "/") }
	}
}
