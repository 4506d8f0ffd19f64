export default function Page() {
  return <h1>Notes</h1>
}
