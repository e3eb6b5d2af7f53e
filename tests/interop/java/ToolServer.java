import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs command-line tools one after another in one JVM: a line {"main": class, "arguments": [...], "input": text} comes
 * in, a line {"status": exit status, "output": what was printed to both streams} goes out.
 */
public class ToolServer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream ANSWERS = System.out;
    private static final long HOOK_MS_MAX = 10_000;
    private static ByteArrayOutputStream printed = new ByteArrayOutputStream();

    private static volatile CompletableFuture<Integer> status;
    /** What the tool has asked to be done when its JVM ends. */
    private static final List<Thread> hooks = new CopyOnWriteArrayList<>();

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
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(new Thread(hook, name)));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = JSON.readTree(line);
            printed = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(request.get("input").asText().getBytes(StandardCharsets.UTF_8)));
            int code = run(request.get("main").asText(), JSON.convertValue(request.get("arguments"), String[].class));
            finish();
            ANSWERS.println(JSON.writeValueAsString(Map.of("status", code, "output", printed.toString())));
            ANSWERS.flush();
        }
        Runtime.getRuntime().halt(0); // whatever threads a tool has left behind
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
                Class.forName(main, true, new Afresh()).getMethod("main", String[].class).invoke(null, (Object) arguments);
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

    private static void finish() throws InterruptedException {
        hooks.forEach(Thread::start);
        for (Thread hook : hooks)
            hook.join(HOOK_MS_MAX);
        hooks.clear();
    }

    /** Some tools count in static variables: each run gets classes of its own, on top of shared libraries. */
    private static final class Afresh extends ClassLoader {
        private static final String OWN = "org.apache.kafka.tools.";
        private static final String SHARED = OWN + "api.";

        Afresh() {
            super(ToolServer.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith(OWN) || name.startsWith(SHARED))
                return super.loadClass(name, resolve);
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded != null ? loaded : define(name);
            }
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
                if (file == null)
                    throw new ClassNotFoundException(name);
                byte[] bytes = file.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
