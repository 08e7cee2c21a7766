// pure

/** Name and value of a header. */
export type Field = readonly [name: string, value: string]

/** The fields that RFC 7541 numbers from one on; `a=b|c` are two with the same name. */
const WRITTEN =
  ':authority :method=GET|POST :path=/|/index.html :scheme=http|https :status=200|204|206|304|400|404|500 accept-charset ' +
  'accept-encoding=gzip,_deflate accept-language accept-ranges accept access-control-allow-origin age allow authorization ' +
  'cache-control content-disposition content-encoding content-language content-length content-location content-range content-type ' +
  'cookie date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified link ' +
  'location max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie ' +
  'strict-transport-security transfer-encoding user-agent vary via www-authenticate'

export const STATIC_FIELDS: readonly Field[] = WRITTEN.split(' ').flatMap((entry) => {
  const [name = '', values = ''] = entry.split('=')
  return values.split('|').map((value) => [name, value.replaceAll('_', ' ')] as const)
})

/** What a field takes of the table of both ends, and of the ceiling of a list. */
export const sizeOfField = ([name, value]: Field): number => name.length + value.length + 32
