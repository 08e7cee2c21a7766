// pure
import { PROXY_PORT } from './namespace-ports.ts'

export const RESOLV_CONF = 'nameserver 127.0.0.1\noptions timeout:2 attempts:2\n'

/**
 * Variables that make programs trust the branch's authority and use the explicit proxy. Programs that ignore them
 * arrive at the transparent ports; the variables only spare them the name lookup.
 */
export function networkEnvironment(bundle: string): Readonly<Record<string, string>> {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`
  const none = 'localhost,127.0.0.1,::1'
  const trust = [
    'SSL_CERT_FILE',
    'NODE_EXTRA_CA_CERTS',
    'REQUESTS_CA_BUNDLE',
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'PIP_CERT',
    'NPM_CONFIG_CAFILE',
    'CARGO_HTTP_CAINFO',
    'AWS_CA_BUNDLE',
    'DENO_CERT',
    'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
    'HEX_CACERTS_PATH',
  ]
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    ALL_PROXY: proxy,
    NO_PROXY: none,
    http_proxy: proxy,
    https_proxy: proxy,
    all_proxy: proxy,
    no_proxy: none,
    NODE_USE_ENV_PROXY: '1',
    ...(bundle === '' ? {} : Object.fromEntries(trust.map((name) => [name, bundle]))),
  }
}
