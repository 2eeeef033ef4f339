package skyband.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF2;

/**
 * What the sieve of a plan has counted in this task since it was last asked: see {@link Candidates#counts}.
 *
 * <p>Spark calls this for what is made of the rows that passed, in the same task. The last of that is made when all rows
 * have been seen, so nothing stays uncounted. Arguments: {@code spark_partition_id()}, which is there for the same reason as
 * in {@link Sieve}, and the plan.
 */
public final class SieveCounts implements UDF2<Integer, byte[], Row> {
  private static final long serialVersionUID = 1L;

  @Override
  public Row call(Integer partition, byte[] plan) {
    TaskContext task = TaskContext.get();
    Candidates candidates = task == null ? null : Tasks.existing(task, plan);
    return candidates == null ? null : candidates.counts();
  }
}
