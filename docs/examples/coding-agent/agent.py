#!/usr/bin/python3
"""A coding agent in fifty lines: reads, runs the tests, asks a model, edits, tests again, commits, files an issue."""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {
        "content-type": "application/json",
        "authorization": "Bearer " + os.environ["MODEL_KEY"],
    })
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.status, json.load(answer)


def tests():
    done = subprocess.run([sys.executable, "-m", "unittest", "-q"], capture_output=True, text=True)
    print("tests:", "pass" if done.returncode == 0 else "fail")
    return done.returncode == 0, done.stderr


def git(*words):
    subprocess.run(["git", *words], check=True)


print("reading", ", ".join(sorted(str(path) for path in pathlib.Path(".").glob("*.py"))))
passing, report = tests()
if passing:
    sys.exit("nothing to do")

files = {str(path): path.read_text() for path in pathlib.Path(".").glob("*.py")}
_, answer = post("https://model.example.com/v1/messages", {"task": "Make the tests pass", "report": report, "files": files})
for name, text in answer["edits"].items():
    pathlib.Path(name).write_text(text)
    print("edited", name)

passing, _ = tests()
if not passing:
    sys.exit("the model's edit does not make the tests pass")
git("add", "-A")
git("commit", "-q", "-m", answer["summary"])
status, answer = post("https://tracker.example.com/issues", {"title": answer["summary"], "body": "Fixed on the main branch."})
print("issue:", status, "queued" if answer.get("queued") else answer)
