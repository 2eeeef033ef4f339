package skyband.spark;

import java.lang.invoke.VarHandle;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/**
 * The best rows of each group and pane that a task has met, and the counts of all its rows.
 *
 * <p>Rows of one pane belong to the same windows, so a row that k rows of its own group and pane outrank can be in no
 * answer. Rows are ranked by (score, time), largest first; rows that rank the same as the k-th all pass. So it may let too
 * much pass, never too little, and what it forgets for lack of room costs nothing else.
 *
 * <p>Scores are compared as longs in their order: a whole number is itself, a float its bits, rearranged.
 */
final class Candidates {
  static final Integer COUNTED = 0;
  static final Integer UNCOUNTED = 1;

  /** Times beyond are left to others, so that no sum below can overflow. */
  private static final long FAR = 1L << 60;

  private final Plan plan;
  private final PaneCounts panes;
  private final Map<Long, Slots> open = new HashMap<>(); // by pane
  private int room; // for rows, in all of them but that of the pane at hand

  private long rows; // counted here, since `counts` was asked, as the next two
  private long rowsWithoutTime;
  private long rowsUnranked;
  private long latest = Long.MIN_VALUE; // the largest time met, since the task began
  private boolean empty = true; // has no row passed yet?
  private volatile boolean ended; // is its task over?

  // The pane at hand has times in [low, high).
  private long low;
  private long high;
  private int counter = -1; // its place in `panes`; -1 when there is no room for it
  private Slots slots;

  // The place at hand is that of `group` in that pane; -1 when it is not looked up yet.
  private int place = -1;
  private long group;

  Candidates(Plan plan) {
    this.plan = plan;
    this.panes = new PaneCounts(plan.capacity());
  }

  void end() {
    ended = true;
  }

  boolean hasEnded() {
    return ended;
  }

  /** See {@link Sieve}. */
  Integer take(Long time, Number score, Long group) {
    Integer passes = decide(time, score, group);
    VarHandle.releaseFence(); // a writer of Python's input may be another thread than the reader that asks for counts
    return passes;
  }

  private Integer decide(Long givenTime, Number score, Long group) {
    if (givenTime == null) {
      rows++;
      rowsWithoutTime++;
      return firstOnly();
    }
    long time = givenTime;
    latest = Math.max(latest, time);
    if (time < low || time >= high) {
      if (time <= -FAR || time >= FAR || !enterPane(time)) {
        empty = false;
        return UNCOUNTED;
      }
    }
    if (score == null || (score instanceof Double && ((Double) score).isNaN())) {
      rows++;
      rowsUnranked++;
      return firstOnly();
    }
    rows++;
    panes.add(counter);
    if (rulesOut(group, key(score), plan.exact() ? time : 0)) {
      return null;
    }
    empty = false;
    return COUNTED;
  }

  /** The first row of all passes whatever it is, so that somebody asks for the counts. */
  private Integer firstOnly() {
    boolean first = empty;
    empty = false;
    return first ? COUNTED : null;
  }

  private long key(Number score) {
    if (score instanceof Long) {
      long whole = (Long) score;
      return plan.ascending() ? ~whole : whole;
    }
    double value = score.doubleValue();
    // Adding 0.0 makes one zero of the two.
    long bits = Double.doubleToRawLongBits((plan.ascending() ? -value : value) + 0.0);
    return bits ^ ((bits >> 63) & Long.MAX_VALUE);
  }

  /** As kernels/panes.py cuts time. False: there is no room to count one more pane. */
  private boolean enterPane(long time) {
    long slide = Math.floorDiv(time, plan.every());
    long start = slide * plan.every();
    long cut = start + plan.every() - plan.rest();
    boolean second = plan.rest() > 0 && time >= cut;
    long pane = 2 * slide + (second ? 1 : 0);
    counter = panes.find(pane);
    if (counter < 0) {
      low = high = 0; // no time is in it, so that the next row comes here again
      return false;
    }
    enterSlots(pane);
    low = second ? cut : start;
    high = second || plan.rest() == 0 ? start + plan.every() : cut;
    return true;
  }

  private void enterSlots(long pane) {
    room += slots == null ? 0 : slots.room();
    if (room > plan.capacity()) {
      forget();
    }
    slots = open.get(pane);
    if (slots == null) {
      slots = new Slots(plan.k());
      open.put(pane, slots);
    } else {
      room -= slots.room();
    }
    place = -1;
  }

  /** Do k rows of its group and pane rank before this one? */
  private boolean rulesOut(Long givenGroup, long key, long time) {
    if (givenGroup != null && Slots.isReserved(givenGroup)) {
      return false;
    }
    long group = givenGroup == null ? Slots.NO_GROUP : givenGroup;
    if (place < 0 || group != this.group) {
      this.group = group;
      place = slots.find(group);
    }
    if (!slots.offer(place, key, time)) {
      return true;
    }
    if (room + slots.room() > plan.capacity()) {
      forget();
      low = high = 0; // the pane at hand has to be found again
    }
    return false;
  }

  private void forget() {
    open.clear();
    slots = null;
    room = 0;
  }

  /**
   * What was counted since this was last asked: (ends, rows, rows_in, rows_null_time, rows_unranked, latest). The first
   * two are arrays of longs in this machine's order: for each pane the end of the last window that holds it, and its rows
   * with a score. `latest` is the largest time of all rows, or null.
   */
  Row counts() {
    VarHandle.acquireFence();
    byte[][] counted = panes.take(plan);
    Row row =
        RowFactory.create(
            counted[0],
            counted[1],
            rows,
            rowsWithoutTime,
            rowsUnranked,
            latest == Long.MIN_VALUE ? null : (Long) latest);
    rows = rowsWithoutTime = rowsUnranked = 0;
    low = high = 0; // the pane at hand has to be found again
    return row;
  }
}
