export default function Home() {
  return <h1>Notes</h1>
}
