/** The build of this checkout, as `npm ci` leaves it in `dist`. */
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { makeOnce } from './artifact.ts'
import { FILES, makeCheckout } from './checkout.ts'

/** Returns the folder `dist` of a build of the present sources. It must not be changed. */
export async function builtPackage(): Promise<string> {
  const folder = await makeOnce({
    name: 'build',
    inputs: FILES,
    async make(folder) {
      const checkout = await makeCheckout()
      const { code, stdout, stderr } = await checkout.run(['npm', 'run', '-s', 'prepare']).ended
      if (code !== 0) throw new Error(`the package cannot be built: ${stdout}${stderr}`)
      await cp(join(checkout.path, 'dist'), join(folder, 'dist'), { recursive: true })
      await checkout.close()
    },
  })
  return join(folder, 'dist')
}
