import { queueLife } from './queue-life.ts'

/** Dies where PUZZLED_FAILPOINTS says. */
const [directory = '', port = '0', count = '0'] = process.argv.slice(2)
const report = await queueLife(directory, Number(port), Number(count), (id) =>
  process.stdout.write(`accepted ${id}\n`),
)
process.stdout.write(`${JSON.stringify(report)}\n`)
