import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

/** One line of the results file: what `tools/test.mjs` counts and prints. */
export interface ResultLine {
  tier: string
  file: string
  name: string
  state: 'passed' | 'failed' | 'skipped'
  /** Why it was skipped, or how it failed. */
  reason?: string
}

/** Writes one JSON line per finished test to the file that PUZZLED_TEST_RESULTS names. */
// biome-ignore lint/style/noDefaultExport: the test runner loads a reporter by its default export
export default class ResultsReporter implements Reporter {
  readonly #file = process.env.PUZZLED_TEST_RESULTS ?? '/dev/null'

  onTestCaseResult(test: TestCase): void {
    const result = test.result()
    if (result.state === 'pending') return
    const line = this.#line(test.module, test.fullName, result.state)
    if (result.state === 'skipped') line.reason = result.note ?? 'no reason given'
    if (result.state === 'failed') line.reason = result.errors.map((error) => error.message).join('\n')
    this.#write(line)
  }

  /** A file that cannot be loaded, or whose hooks fail, has failed even if no test of it did. */
  onTestModuleEnd(module: TestModule): void {
    for (const error of module.errors())
      this.#write({ ...this.#line(module, '(the file itself)', 'failed'), reason: error.message })
  }

  onTestRunEnd(_: unknown, unhandled: readonly { message?: string }[]): void {
    for (const error of unhandled)
      this.#write({
        tier: 'run',
        file: '',
        name: '(unhandled error)',
        state: 'failed',
        reason: error.message ?? String(error),
      })
  }

  #line(module: TestModule, name: string, state: ResultLine['state']): ResultLine {
    return { tier: module.project.name, file: relative(process.cwd(), module.moduleId), name, state }
  }

  #write(line: ResultLine): void {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`)
  }
}
