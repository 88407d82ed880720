/* @NAME@: the model and its example. Made by Baretorch @VERSION@. */
#ifndef @UP@_H
#define @UP@_H

#include "@NAME@/example.h"
#include "@NAME@/model.h"

#endif
