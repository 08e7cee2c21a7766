// pure

/** Where the explicit proxy listens inside every branch. */
export const PROXY_PORT = 3128
