/** The Kubernetes manifests are valid, fit each other, and let pods end and start without a failed request. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../harness/process.ts'
import { checkEnvironment } from './environment.ts'
import { instructionsOf } from './image.ts'

const DEFAULT_GRACE_MS = 10_000

const read = (path: string) => readFileSync(join(ROOT, 'ops', path), 'utf8')
const manifest = (name: string) => parse(read(`kubernetes/${name}`))

const kustomization = manifest('kustomization.yaml')
const deployment = manifest('deployment.yaml')
const service = manifest('service.yaml')
const autoscaler = manifest('horizontal-pod-autoscaler.yaml')
const budget = manifest('pod-disruption-budget.yaml')
const policy = manifest('network-policy.yaml')
const { spec: pod } = deployment.spec.template
const [container] = pod.containers
const labels = { 'app.kubernetes.io/name': 'portcullis' }

const folder = mkdtempSync(join(tmpdir(), 'portcullis-kubernetes-'))
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
afterAll(() => rmSync(folder, { recursive: true }))

/**
 * Compares a manifest with the types that `kubernetes-models` generates from the API of Kubernetes. Returns
 * the errors of the compiler. The schemas alone accept unknown fields.
 */
function mistakesOf(document: { apiVersion: string; kind: string }): string {
  const { apiVersion, kind } = document
  const file = join(folder, 'manifest.ts')
  const source = `import type { I${kind} } from 'kubernetes-models/${apiVersion}'
    export default ${JSON.stringify(document, null, 1)} satisfies I${kind}`
  writeFileSync(file, source)
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--types', '', '--module', 'preserve']
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  return spawnSync(process.execPath, [compiler, ...options, file], {
    cwd: folder,
    encoding: 'utf8',
  }).stdout
}

describe.each(kustomization.resources as readonly string[])('%s', (name) => {
  test('is valid for the API of Kubernetes', async () => {
    const document = manifest(name)
    expect(mistakesOf(document)).toBe('')
    const models = `kubernetes-models/${document.apiVersion}`
    const { [document.kind]: Model } = await import(models)
    new Model(document).validate()
  })
})

test.each([
  ['an unknown field', 'readinessProbe', 'readinesProbe', '"readinesProbe"\' does not exist'],
  ['a text instead of a number', 'maxSkew: 1', 'maxSkew: "1"', "'string' is not assignable"],
  ['a missing field', '              port: http\n', '', '"port"\' is missing'],
])('the check of a manifest finds %s', (_, from, to, mistake) => {
  const text = read('kubernetes/deployment.yaml')
  expect(text).toContain(from)
  expect(mistakesOf(parse(text.replace(from, to)))).toContain(mistake)
})

test('every manifest is part of the kustomization, and in its namespace', () => {
  expect(kustomization.resources).toHaveLength(6)
  expect(manifest('namespace.yaml').metadata.name).toBe(kustomization.namespace)
})

test('every selector selects the pods of the deployment', () => {
  expect(deployment.spec.template.metadata.labels).toEqual(labels)
  const selectors = [
    deployment.spec.selector,
    budget.spec.selector,
    policy.spec.podSelector,
    ...pod.topologySpreadConstraints.map(
      ({ labelSelector }: { labelSelector: object }) => labelSelector,
    ),
  ]
  for (const selector of selectors) expect(selector).toEqual({ matchLabels: labels })
  expect(service.spec.selector).toEqual(labels)
  const { apiVersion, kind, metadata } = deployment
  expect(autoscaler.spec.scaleTargetRef).toEqual({ apiVersion, kind, name: metadata.name })
})

test('the port is that of the image everywhere', () => {
  const variables = instructionsOf(read('docker/Dockerfile')).find(([name]) => name === 'ENV')
  const [{ name, containerPort }] = container.ports
  expect(variables?.[1]).toContain(`PORT=${containerPort}`)
  const { startupProbe, readinessProbe, livenessProbe } = container
  const probed = [startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet.port)
  const [{ targetPort }] = service.spec.ports
  const [{ ports }] = policy.spec.ingress
  expect([...probed, targetPort, ports[0].port]).toEqual(Array(5).fill(name))
})

test('a pod waits for Redis and the key sets before its first request, and only then', () => {
  const { startupProbe, readinessProbe, livenessProbe } = container
  const probed = [startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet.path)
  expect(probed).toEqual(['/-/readyz', '/-/healthz', '/-/healthz'])
})

test('a rollout takes no pod away before another one is ready', () => {
  const { rollingUpdate } = deployment.spec.strategy
  expect(rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 })
  expect(autoscaler.spec.minReplicas).toBeGreaterThan(budget.spec.maxUnavailable)
  // The autoscaler sets it; every rollout would reset it.
  expect(deployment.spec).not.toHaveProperty('replicas')
})

test('a pod has more time to end than its wait and its grace periods', () => {
  const { sleep } = container.lifecycle.preStop
  const longest = sleep.seconds * 1_000 + 2 * DEFAULT_GRACE_MS
  expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(longest)
})

test('a pod satisfies the restricted standard, and has the user of the image', () => {
  const [, user] = instructionsOf(read('docker/Dockerfile')).find(([name]) => name === 'USER') ?? []
  const { runAsUser, runAsGroup, ...others } = pod.securityContext
  expect(`${runAsUser}:${runAsGroup}`).toBe(user)
  expect(others).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  expect(pod.automountServiceAccountToken).toBe(false)
})

test('variables come from the generated map, secrets from a reference, and a gateway accepts them', () => {
  const [{ name, literals }] = kustomization.configMapGenerator
  expect(container.envFrom).toEqual([
    { configMapRef: { name } },
    { secretRef: { name: 'portcullis' } },
  ])
  const pairs = (literals as string[]).map((text) => /^(\w+)=(.+)$/.exec(text)?.slice(1))
  const variables = Object.fromEntries(pairs as [string, string][])
  expect(() => checkEnvironment(variables)).toThrow(/REDIS_URL/)
  checkEnvironment({ ...variables, REDIS_URL: 'redis://:password@redis:6379' })
})

test('connections come only from the ingress controller, and none goes to the metadata service', () => {
  expect(policy.spec.policyTypes).toEqual(['Ingress', 'Egress'])
  expect(policy.spec.ingress).toHaveLength(1)
  const blocks = policy.spec.egress.flatMap(({ to }: { to: { ipBlock?: object }[] }) =>
    to.flatMap(({ ipBlock }) => ipBlock ?? []),
  )
  expect(blocks).toHaveLength(1)
  expect(blocks[0].except).toContain('169.254.0.0/16')
})
