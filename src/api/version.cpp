#include "headroom/headroom.h"

namespace headroom {

const char* version() { return HEADROOM_VERSION; }

}  // namespace headroom
