/* A stand-in for a generated model, small enough to check by hand. */
#ifndef DUMMY_MODEL_H
#define DUMMY_MODEL_H

void dummy_run(const float *x, float *y, int n);
int dummy_unrelated(int a);

extern float dummy_arena[64];
extern const float dummy_weights[4];

#endif
