import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;

/** A database in memory for the conformance suite, on the port that is the first argument. */
class Database {
  public static void main(String[] arguments) throws Exception {
    var backend = new MemoryBackend() {
      @Override
      public Document handleMessage(MongoMessage message) {
        // The suite reads its version when it starts, and the library does not know the command.
        if (!message.getDocument().containsKey("getParameter")) return super.handleMessage(message);
        var version = new Document("version", "6.0");
        return new Document("featureCompatibilityVersion", version).append("ok", 1);
      }
    };
    new MongoServer(backend).bind("127.0.0.1", Integer.parseInt(arguments[0]));
    Thread.currentThread().join();
  }
}
