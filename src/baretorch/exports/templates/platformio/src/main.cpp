#include <Arduino.h>

// Runs the model on its example once a second, and checks the answer.
#include <@NAME@.h>

void setup() {
  Serial.begin(115200);
}

void loop() {
  const unsigned long begin = micros();
  @NAME@_example_run();
  const unsigned long us = micros() - begin;
  for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++) {
    Serial.print(i);
    Serial.print(": ");
    Serial.println(@NAME@_example_answer(i), 6);
  }
  Serial.print("@NAME@: ");
  Serial.print(@NAME@_example_wrong() ? "WRONG, " : "right, ");
  Serial.print(us);
  Serial.println(" us");
  delay(1000);
}
