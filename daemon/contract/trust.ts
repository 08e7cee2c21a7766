// pure

/** Where systems keep the bundle of authorities that OpenSSL, Go and most others read. */
export const BUNDLE_PATHS: readonly string[] = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

export const BUNDLE_REMEDY = 'apt-get install ca-certificates'
