/**
 * Loaded into wrangler: ends its process group when the parent process is gone, even if the parent
 * was killed and could not clean up.
 */
const POLL_MS = 1_000
const GRACE_MS = 3_000
const OWN_GROUP = 0

const parent = process.ppid
const poll = setInterval(() => {
  if (process.ppid === parent) return
  clearInterval(poll)
  setTimeout(() => process.kill(OWN_GROUP, 'SIGKILL'), GRACE_MS)
  process.kill(OWN_GROUP, 'SIGTERM')
}, POLL_MS)
poll.unref()
