package skyband.spark;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The sieves of running task attempts. A thread outlives its task, and a function its query; what a sieve remembers
 * belongs to one attempt at one task, and goes with it, whether it succeeds, fails or is killed.
 */
final class Tasks {
  private static final Map<Long, Map<ByteBuffer, Candidates>> ATTEMPTS = new ConcurrentHashMap<>();

  private Tasks() {}

  /** The sieve of this plan in this attempt, new if there is none. */
  static Candidates candidates(TaskContext task, byte[] plan) {
    long attempt = task.taskAttemptId();
    Map<ByteBuffer, Candidates> plans = ATTEMPTS.get(attempt);
    if (plans == null) {
      Map<ByteBuffer, Candidates> added = new ConcurrentHashMap<>();
      plans = ATTEMPTS.putIfAbsent(attempt, added);
      if (plans == null) {
        plans = added;
        task.addTaskCompletionListener((TaskCompletionListener) ended -> ATTEMPTS.remove(attempt).values().forEach(Candidates::end));
      }
    }
    return plans.computeIfAbsent(ByteBuffer.wrap(plan), key -> new Candidates(Plan.read(plan)));
  }

  /** The sieve of this plan in this attempt, or null if it has seen no row. */
  static Candidates existing(TaskContext task, byte[] plan) {
    Map<ByteBuffer, Candidates> plans = ATTEMPTS.get(task.taskAttemptId());
    return plans == null ? null : plans.get(ByteBuffer.wrap(plan));
  }

  /** How many attempts hold memory now: for tests. */
  public static int running() {
    return ATTEMPTS.size();
  }
}
