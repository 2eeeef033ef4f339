package skyband.spark;

import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF5;

/**
 * May a row still be among the best k of its group and pane? Spark calls this for every row, before the row leaves the JVM.
 *
 * <p>Arguments: {@code spark_partition_id()}, the plan (see {@link Plan}), the time in ticks, the score, the group. The
 * first is not read. It makes the call nondeterministic, so that Catalyst evaluates it once a row, where it was put.
 *
 * <p>Answers null for a row that is ruled out, 0 for one that passes and is counted here (see {@link SieveCounts}), and 1
 * for one that passes and is to be counted by whoever takes it.
 */
public final class Sieve implements UDF5<Integer, byte[], Long, Number, Long, Integer> {
  private static final long serialVersionUID = 1L;

  private transient volatile Running[] running;

  /** What one plan does in one task, on one thread. */
  private record Running(Thread thread, byte[] plan, Candidates candidates) {}

  @Override
  public Integer call(Integer partition, byte[] plan, Long time, Number score, Long group) {
    Candidates candidates = candidates(plan);
    // Without a task this is the optimizer, on the driver: nobody would ask for counts.
    return candidates == null ? Candidates.UNCOUNTED : candidates.take(time, score, group);
  }

  /**
   * What this thread has used before, if the task is still running: to ask Spark for the task costs more than all the rest. A
   * thread works for one task until that ends. Several plans take turns in a query that answers several questions, so a few
   * are remembered, not the last one.
   */
  private Candidates candidates(byte[] plan) {
    Running[] known = running;
    if (known != null) {
      Thread thread = Thread.currentThread();
      for (Running one : known) {
        if (one.plan == plan && one.thread == thread && !one.candidates.hasEnded()) {
          return one.candidates;
        }
      }
    }
    TaskContext task = TaskContext.get();
    if (task == null) {
      return null;
    }
    Candidates found = Tasks.candidates(task, plan);
    running = with(known, new Running(Thread.currentThread(), plan, found));
    return found;
  }

  /** Those of them whose task is running, and one more. */
  private static Running[] with(Running[] known, Running added) {
    Running[] more = new Running[known == null ? 1 : known.length + 1];
    int size = 0;
    for (int i = 0; known != null && i < known.length; i++) {
      if (!known[i].candidates.hasEnded()) {
        more[size++] = known[i];
      }
    }
    more[size++] = added;
    return Arrays.copyOf(more, size);
  }
}
