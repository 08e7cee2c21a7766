import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

/** Prints the protocol and the body of each URL it is given; ends with 1 at the first that fails. */
const READS = `package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	for _, url := range os.Args[1:] {
		answer, err := http.Get(url)
		if err != nil { fmt.Println(err); os.Exit(1) }
		body, _ := io.ReadAll(answer.Body)
		fmt.Println(answer.Proto, string(body))
	}
}
`

/** Builds a Go program that reads URLs; `directory` is for its source. */
export function buildGoReader(directory: string, binary: string): void {
  const source = join(directory, 'main.go')
  writeFileSync(source, READS)
  const built = spawnSync('go', ['build', '-o', binary, source], { encoding: 'utf8', cwd: directory })
  expect(built.stderr).toBe('')
}
