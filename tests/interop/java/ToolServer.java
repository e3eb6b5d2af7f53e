import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs command-line tools one after another in one JVM: a line {"main": class, "arguments": [...]} comes in, a line
 * {"status": exit status, "output": what was printed to both streams} goes out.
 */
public class ToolServer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream ANSWERS = System.out;
    private static ByteArrayOutputStream printed = new ByteArrayOutputStream();

    private static volatile CompletableFuture<Integer> status;

    public static void main(String[] none) throws Exception {
        // Scala remembers the stream that it finds first, so there is one, and what is behind it changes
        PrintStream shared = new PrintStream(new OutputStream() {
            @Override
            public void write(int b) {
                printed.write(b);
            }

            @Override
            public void write(byte[] bytes, int offset, int length) {
                printed.write(bytes, offset, length);
            }
        }, true);
        System.setOut(shared);
        System.setErr(shared);
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = JSON.readTree(line);
            printed = new ByteArrayOutputStream();
            int code = run(request.get("main").asText(), JSON.convertValue(request.get("arguments"), String[].class));
            ANSWERS.println(JSON.writeValueAsString(Map.of("status", code, "output", printed.toString())));
            ANSWERS.flush();
        }
    }

    /** A tool that asks for the end of the JVM gets the end of its thread: it stands still, so that it prints no more. */
    private static void end(int code) {
        status.complete(code);
        while (true)
            LockSupport.park();
    }

    private static int run(String main, String[] arguments) throws Exception {
        status = new CompletableFuture<>();
        Thread tool = new Thread(() -> {
            try {
                Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
                status.complete(0);
            } catch (InvocationTargetException thrown) {
                thrown.getCause().printStackTrace();
                status.complete(1);
            } catch (ReflectiveOperationException error) {
                status.completeExceptionally(error);
            }
        });
        tool.setDaemon(true);
        tool.start();
        return status.get();
    }
}
