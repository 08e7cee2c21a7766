import { METRICS, type MetricShape, seriesOf } from '../../daemon/metrics/table.ts'

const labelsText = (labels: MetricShape['labels']): string =>
  Object.entries(labels)
    .map(([name, values]) => `\`${name}\`: ${values.map((value) => `\`${value}\``).join(' ')}`)
    .join('; ')

const rows = Object.entries(METRICS).map(([name, shape]) => {
  const labels = shape.type === 'info' ? '`version`' : labelsText(shape.labels)
  return `| \`${name}\` | ${shape.type} | ${shape.help} | ${labels} |`
})

const text = `# Metrics

Generated from \`daemon/metrics/table.ts\`. The daemon answers \`GET /metrics\` (HTTP/1.1, OpenMetrics 1.0) on
\`/run/puzzled/metrics.sock\`, which root and the group \`puzzled-reviewers\` may open; \`puzzlectl metrics\` prints it:

\`\`\`sh
sudo curl -sS --unix-socket /run/puzzled/metrics.sock http://localhost/metrics
\`\`\`

A collector that cannot read sockets is given a port of the loopback. It has no rights: everybody on the machine can read it, agents
cannot (their network has a loopback of its own).

\`\`\`yaml
# /etc/puzzled/puzzled.yaml
metrics:
  socket: true          # the default
  loopback_port: 9464   # default: none
\`\`\`

Labels have the values that stand here; whatever else is counted is \`other\`. No name, host or path that an agent chose is ever a label,
so an agent cannot make series. A counter's line is called \`NAME_total\`; a histogram has \`NAME_bucket\`, \`NAME_sum\`, \`NAME_count\`.
\`systemd/grafana-dashboard.json\` is a dashboard over them.

| metric | type | what | labels |
|---|---|---|---|
${rows.join('\n')}

Counting costs a look-up and an addition; the text is computed when somebody asks. Packets that the kernel drops are
counted when the network of a branch closes.
`
for (const [name, shape] of Object.entries(METRICS))
  if (seriesOf(name, shape).length === 0) throw new Error(`${name} has no series`)
console.log(JSON.stringify({ 'docs/metrics.md': text }))
