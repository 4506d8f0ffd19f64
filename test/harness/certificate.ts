/** Certificates of a private authority for `localhost` and `127.0.0.1`. Needs `openssl`. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Creates `ca.pem` and `ca.key` in a folder, which sign the certificates of {@link writeCertificate}. */
export function writeAuthority(folder: string): void {
  openssl(
    folder,
    'req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca',
  )
}

/** Creates `<name>.pem` and `<name>.key` in the folder of an authority, for `names` as openssl writes them. */
export function writeCertificate(
  folder: string,
  name: string,
  names = 'DNS:localhost,IP:127.0.0.1',
): void {
  openssl(
    folder,
    `req -newkey rsa:2048 -nodes -keyout ${name}.key -out ${name}.csr -subj /CN=${name}`,
  )
  writeFileSync(join(folder, 'ext'), `subjectAltName=${names}\n`)
  openssl(
    folder,
    `x509 -req -in ${name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out ${name}.pem -days 2 -extfile ext`,
  )
}

function openssl(folder: string, command: string): void {
  execFileSync('openssl', command.split(' '), { cwd: folder, stdio: 'pipe' })
}
