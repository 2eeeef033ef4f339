package skyband.spark;

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

  /** What one plan does in one task. */
  private record Running(TaskContext task, byte[] plan, Candidates candidates) {}

  @Override
  public Integer call(Integer partition, byte[] plan, Long time, Number score, Long group) {
    TaskContext task = TaskContext.get();
    if (task == null) { // the optimizer, on the driver: nobody would ask for counts
      return Candidates.UNCOUNTED;
    }
    return candidates(task, plan).take(time, score, group);
  }

  /** Several plans take turns in a query that answers several questions, so a few are remembered, not the last one. */
  private Candidates candidates(TaskContext task, byte[] plan) {
    Running[] known = running;
    if (known != null) {
      for (Running one : known) {
        if (one.task == task && one.plan == plan) {
          return one.candidates;
        }
      }
    }
    Candidates found = Tasks.candidates(task, plan);
    boolean sameTask = known != null && known[0].task == task;
    Running[] more = new Running[sameTask ? known.length + 1 : 1];
    if (sameTask) {
      System.arraycopy(known, 0, more, 0, known.length);
    }
    more[more.length - 1] = new Running(task, plan, found);
    running = more;
    return found;
  }
}
