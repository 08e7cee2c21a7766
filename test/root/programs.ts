import { spawnSync } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { program } from '../tier/needs.ts'

export interface RealProgram {
  readonly name: string
  readonly needs: readonly string[]
  /** For `sh -eu`, in an empty directory. What it prints must not depend on where and as whom it runs. */
  readonly script: string
  /** Tool chains in root's home are seen by root's agents only. */
  readonly asRoot?: boolean
  /** A directory that the first run fills and every later one begins with: compiling a standard library takes long. */
  readonly cache?: string
  /** A mount of the profile without which it is not there, below home; where the tool is elsewhere it says nothing. */
  readonly mount?: string
  /** A tool manager's shim may be there without a tool behind it: this has to end well outside first. */
  readonly probe?: string
}

/** Programs as people use them, unmodified. */
export const PROGRAMS: readonly RealProgram[] = [
  {
    name: 'bash pipelines, process substitution and jobs',
    needs: ['bash'],
    script: `bash -euc '
      seq 1000 | grep 7 | sort -rn | head -3 | tr "\\n" " "
      diff <(printf "a\\nb\\n") <(printf "a\\nc\\n") | wc -l
      mkfifo pipe; (echo through >pipe &) ; cat pipe
      sleep 0.01 & wait $!; echo "job $?"
      f() { return 3; }; set +e; f; echo "status $?"; trap "echo trapped" USR1; kill -USR1 $$'
      exit 5`,
  },
  {
    name: 'git init, commit, clone, worktree, rebase',
    needs: ['git'],
    script: `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
      export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z
      git init -q -b main origin; cd origin; echo one >file; git add .; git commit -qm one
      git checkout -qb side; echo side >other; git add .; git commit -qm side; git checkout -q main; cd ..
      git clone -q origin copy; cd copy; git worktree add -q ../tree origin/side; cat ../tree/other
      echo two >>file; git commit -qam two; git rebase -q origin/side; git log --format=%s; git push -q origin HEAD:refs/heads/new
      git gc -q; git fsck --strict 2>&1; git status --short; git -C ../origin rev-parse new`,
  },
  {
    name: 'python threads, processes and sqlite',
    needs: ['/usr/bin/python3'],
    script: `cat >p.py <<'EOF'
import concurrent.futures, multiprocessing, sqlite3, subprocess, tempfile, threading, venv
def square(n): return n * n
if __name__ == '__main__':
    with concurrent.futures.ThreadPoolExecutor(8) as pool: print(sum(pool.map(square, range(100))))
    with multiprocessing.Pool(2) as pool: print(sum(pool.map(square, range(100))))
    print(subprocess.run(['sh', '-c', 'cat; exit 3'], input=b'in', capture_output=True).returncode)
    done = threading.Event(); threading.Timer(0.01, done.set).start(); print(done.wait(5))
    db = sqlite3.connect('p.db'); db.execute('create table t(a)'); db.executemany('insert into t values(?)', [(n,) for n in range(50)])
    db.commit(); print(db.execute('select sum(a) from t').fetchone()[0])
    with tempfile.NamedTemporaryFile() as f: f.write(b'x'); print(f.tell())
EOF
      /usr/bin/python3 p.py`,
  },
  {
    name: 'node with workers, and npm install from a local archive',
    needs: ['node', 'npm'],
    script: `mkdir dep app; cd dep
      echo '{"name":"dep","version":"1.0.0","main":"i.js"}' >package.json; echo 'module.exports = 42' >i.js
      npm pack --silent; cd ../app
      echo '{"name":"app","version":"1.0.0","scripts":{"start":"node main.js"}}' >package.json
      npm install --silent --no-audit --no-fund --offline ../dep/dep-1.0.0.tgz
      cat >main.js <<'EOF'
const { Worker, isMainThread, parentPort } = require('worker_threads')
const { execFileSync } = require('child_process')
if (isMainThread) {
  console.log(require('dep'), execFileSync('cat', { input: 'child' }).toString())
  new Worker(__filename).on('message', (m) => { console.log(m); require('fs').promises.readFile('package.json').then((b) => console.log(b.length)) })
} else parentPort.postMessage('worker')
EOF
      npm start --silent`,
  },
  {
    name: 'make and gcc building and running a C project',
    needs: ['make', 'gcc'],
    script: `printf 'int f(void){return 40;}\\n' >f.c
      printf '#include <stdio.h>\\n#include <pthread.h>\\nint f(void);static void*g(void*x){return x;}\\nint main(void){pthread_t t;pthread_create(&t,0,g,0);pthread_join(t,0);printf("%%d\\\\n",f()+2);return 9;}\\n' >main.c
      printf 'prog: main.o f.o\\n\\tgcc -o $@ $^ -pthread\\n%%.o: %%.c\\n\\tgcc -O1 -c -o $@ $<\\n' >Makefile
      make -sj4; set +e; ./prog; echo "exit $?"; make -s; ar rcs lib.a f.o; gcc -shared -fPIC -o libf.so f.c; gcc -o dyn main.c -L. -lf -pthread; LD_LIBRARY_PATH=. ./dyn`,
  },
  {
    name: 'go building and running a module',
    needs: ['go'],
    cache: '.cache',
    script: `export GOFLAGS=-mod=mod GOCACHE=$PWD/.cache GOPATH=$PWD/.go GOTOOLCHAIN=local
      printf 'module m\\n\\ngo 1.21\\n' >go.mod
      printf 'package main\\nimport ("fmt";"sync")\\nfunc main(){var w sync.WaitGroup;c:=make(chan int,8);for i:=0;i<8;i++{w.Add(1);go func(n int){defer w.Done();c<-n}(i)};w.Wait();close(c);s:=0;for n:=range c{s+=n};fmt.Println(s)}\\n' >main.go
      go vet ./...; go run .; chmod -R u+w .go 2>/dev/null || true`,
  },
  {
    name: 'cargo building and testing a crate',
    needs: ['cargo'],
    asRoot: true,
    mount: '.cargo/bin',
    probe: 'cargo --version',
    script: `export CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$PWD/target
      mkdir -p c/src; cd c; printf '[package]\\nname="c"\\nversion="0.1.0"\\nedition="2021"\\n' >Cargo.toml
      printf 'fn main(){println!("{}", std::thread::spawn(||6*7).join().unwrap())}\\n#[test]\\nfn t(){}\\n' >src/main.rs
      cargo run -q; cargo test -q 2>/dev/null | grep -c 'test result: ok'`,
  },
  {
    name: 'sqlite3 in WAL mode',
    needs: ['sqlite3'],
    script: `sqlite3 d.db 'pragma journal_mode=wal; create table t(a); insert into t values(1),(2);'
      (sqlite3 d.db 'insert into t select a from t' & wait); sqlite3 d.db 'select sum(a) from t; pragma integrity_check'`,
  },
  {
    name: 'tar with links, modes and sparse files',
    needs: ['tar', 'gzip'],
    script: `mkdir s; echo x >s/a; ln s/a s/hard; ln -s a s/soft; chmod 750 s; truncate -s 1M s/sparse; printf n >"s/new
line"
      tar -cSzf s.tgz s; mkdir o; tar -xzpf s.tgz -C o; ls o/s | wc -l; stat -c '%a %h' o/s o/s/a; readlink o/s/soft; cmp s/sparse o/s/sparse; cp -a o/s copy; diff -r s copy`,
  },
  {
    name: 'rsync',
    needs: ['rsync'],
    script: `mkdir -p a/b; echo 1 >a/b/f; ln -s b a/l; rsync -aH --delete a/ c/; echo 2 >>a/b/f; rsync -ai a/ c/ | wc -l; diff -r a c; readlink c/l`,
  },
  {
    name: 'tmux',
    needs: ['tmux'],
    script: `export TERM=xterm LC_ALL=C.UTF-8
      tmux -S $PWD/sock -f /dev/null new-session -d -x 80 -y 24 'echo inside >out; sleep 100'
      n=0; while [ ! -s out ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done
      cat out; tmux -S $PWD/sock list-sessions -F '#{session_windows}'; tmux -S $PWD/sock kill-server; rm -f sock`,
  },
  {
    name: 'find, xargs, awk, sed, flock, timeout and nice',
    needs: ['flock', 'awk'],
    script: `mkdir d; for i in 1 2 3; do echo $i >d/$i; done
      find d -type f -print0 | xargs -0 -n1 -P3 cat | sort | awk '{s+=$1} END {print s}'; sed -i s/1/7/ d/1; cat d/1
      flock lock echo locked; set +e; timeout 0.1 sleep 10; echo "timeout $?"; nice -n 5 true; echo "nice $?"; kill -l 9`,
  },
]

/** Where the tools are found, outside and inside alike. */
export const toolPath = `${join(homedir(), '.cargo/bin')}:/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin`

/** Why this machine cannot run it. */
export function missingFor(real: RealProgram): (string | undefined)[] {
  const absent = real.needs.map((name) => (name.startsWith('/') ? undefined : program(name)))
  if (real.probe === undefined || absent.some((reason) => reason !== undefined)) return absent
  const environment = { PATH: toolPath, HOME: homedir() }
  const probed = spawnSync('sh', ['-c', real.probe], { env: environment })
  return probed.status === 0 ? absent : [`needs \`${real.probe}\` to work`]
}
