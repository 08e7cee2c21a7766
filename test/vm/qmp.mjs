// Saves a machine through QEMU's monitor protocol: one JSON message per line, answers among events.
import { setTimeout as sleep } from 'node:timers/promises'

/** Writes the state of the machine behind the monitor `socket` to `file`; the machine stands still then. */
export async function saveMachine(socket, file) {
  const answers = []
  let wake = () => undefined
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
    const lines = text.split('\n')
    text = lines.pop()
    for (const line of lines.filter(Boolean).map((each) => JSON.parse(each)))
      if ('return' in line || 'error' in line) answers.push(line)
    wake()
  })
  const ask = async (execute, args) => {
    socket.write(`${JSON.stringify({ execute, ...(args === undefined ? {} : { arguments: args }) })}\n`)
    while (answers.length === 0)
      await new Promise((resolve) => {
        wake = resolve
      })
    const answer = answers.shift()
    if (answer.error !== undefined) throw new Error(`The monitor refused ${execute}: ${answer.error.desc}`)
    return answer.return
  }
  await ask('qmp_capabilities')
  // Not stopped first: a machine that was saved standing still would be resumed standing still.
  await ask('migrate-set-parameters', { 'max-bandwidth': 2 ** 40 })
  await ask('migrate', { uri: `exec:cat > '${file}'` })
  for (;;) {
    const { status } = await ask('query-migrate')
    if (status === 'completed') return
    if (status === 'failed' || status === 'cancelled')
      throw new Error(`The machine could not be saved: ${status}`)
    await sleep(100)
  }
}
