/* @NAME@: the model and its example. Made by Baretorch @VERSION@.
 *
 * On @BOARD@:
 *   @EACH_FIGURE@
 * model.json has the same figures for programs. */
#ifndef @UP@_H
#define @UP@_H

#include "@NAME@/example.h"
#include "@NAME@/model.h"

#endif
