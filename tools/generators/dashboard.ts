type Panel = readonly [
  title: string,
  unit: string,
  queries: readonly (readonly [legend: string, query: string])[],
]

const rate = (series: string, by: string): string => `sum by (${by}) (rate(${series}[$__rate_interval]))`
const quantiles = (name: string): Panel[2] =>
  [0.5, 0.95, 0.99].map((share) => [
    `p${share * 100}`,
    `histogram_quantile(${share}, sum by (le) (rate(${name}_bucket[$__rate_interval])))`,
  ])

/** What an operator looks at first stands first. */
const PANELS: readonly Panel[] = [
  ['Agents that run', 'short', [['agents', 'puzzled_agents']]],
  ['Denials by layer', 'ops', [['{{layer}}', rate('puzzled_denials_total', 'layer')]]],
  ['Branches by where they come to', 'ops', [['{{to}}', rate('puzzled_branch_moves_total', 'to')]]],
  [
    'How agents end',
    'ops',
    [
      ['{{cause}}', rate('puzzled_agent_exits_total', 'cause')],
      ['and are started again', 'sum(rate(puzzled_agent_restarts_total[$__rate_interval]))'],
    ],
  ],
  ['Start of an agent', 's', quantiles('puzzled_start_seconds')],
  ['Comparison with the base', 's', quantiles('puzzled_diff_seconds')],
  ['Gate', 's', quantiles('puzzled_gate_seconds')],
  ['Verdicts', 'ops', [['{{verdict}}', rate('puzzled_gate_seconds_count', 'verdict')]]],
  ['Commit', 's', quantiles('puzzled_commit_seconds')],
  ['Commits by result', 'ops', [['{{result}}', rate('puzzled_commit_seconds_count', 'result')]]],
  ['Changes landed', 'ops', [['changes', 'sum(rate(puzzled_commit_changes_total[$__rate_interval]))']]],
  ['Decisions of reviewers', 'ops', [['{{decision}}', rate('puzzled_approvals_total', 'decision')]]],
  [
    'Requests through the proxy',
    'reqps',
    [['{{class}}', rate('puzzled_proxy_request_seconds_count', 'class')]],
  ],
  ['Time in the proxy', 's', quantiles('puzzled_proxy_request_seconds')],
  ['Bytes', 'Bps', [['{{direction}}', rate('puzzled_proxy_bytes_total', 'direction')]]],
  ['Held requests', 'ops', [['{{state}}', rate('puzzled_queue_requests_total', 'state')]]],
  ['Budgets used up', 'ops', [['{{budget}}', rate('puzzled_budget_exceeded_total', 'budget')]]],
  ['Budgets at 90 %', 'ops', [['{{budget}}', rate('puzzled_budget_warnings_total', 'budget')]]],
  ['Audit record on disk', 's', quantiles('puzzled_audit_append_seconds')],
  [
    'Trouble',
    'ops',
    [
      ['warnings', 'sum(rate(puzzled_warnings_total[$__rate_interval]))'],
      ['refused calls', 'sum(rate(puzzled_refused_calls_total[$__rate_interval]))'],
      ['audit failures', 'sum(rate(puzzled_audit_append_seconds_count{result="failed"}[$__rate_interval]))'],
    ],
  ],
  ['Memory of the daemon', 'bytes', [['resident', 'process_resident_memory_bytes']]],
  [
    'Work of the daemon',
    'percentunit',
    [
      ['CPU', 'rate(process_cpu_seconds_total[$__rate_interval])'],
      ['event loop busy', 'puzzled_event_loop_busy_ratio'],
      ['event loop silent (s)', 'puzzled_event_loop_delay_seconds'],
    ],
  ],
]

const COLUMNS = 3
const [width, height] = [24 / COLUMNS, 7]
/** Grafana puts the choice of the viewer in its place. */
const datasource = { type: 'prometheus', uid: '$datasource' }
const panels = PANELS.map(([title, unit, queries], index) => ({
  id: index + 1,
  type: 'timeseries',
  title,
  datasource,
  gridPos: { h: height, w: width, x: (index % COLUMNS) * width, y: Math.floor(index / COLUMNS) * height },
  fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 8, showPoints: 'never' } }, overrides: [] },
  options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  targets: queries.map(([legendFormat, expr], at) => ({
    refId: String.fromCharCode(65 + at),
    datasource,
    expr,
    legendFormat,
  })),
}))

const dashboard = {
  title: 'puzzled',
  uid: 'puzzled',
  description: 'Agents in branches: what runs, what is refused, how long it takes.',
  schemaVersion: 39,
  version: 1,
  editable: true,
  refresh: '30s',
  time: { from: 'now-6h', to: 'now' },
  tags: ['puzzled'],
  templating: {
    list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' }],
  },
  annotations: { list: [] },
  panels,
}
console.log(JSON.stringify({ 'systemd/grafana-dashboard.json': `${JSON.stringify(dashboard, null, 2)}\n` }))
