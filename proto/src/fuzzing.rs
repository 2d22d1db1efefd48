//! Duty: one function per fuzz target: any bytes must end in a value, "need more" or an error, never in a panic. Built for
//! tests and with the feature `fuzzing` only. Must not know where the bytes come from.
