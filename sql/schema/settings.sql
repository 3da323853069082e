-- Bodies are checked when they run: functions refer to each other in any order.
SET LOCAL check_function_bodies = off;
