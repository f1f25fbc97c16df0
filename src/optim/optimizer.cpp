#include "optim/optimizer.h"

#include "base/error.h"

namespace headroom {

const Optimizer& find_optimizer(const std::string& name) {
  if (name == adamw_optimizer().name) return adamw_optimizer();
  throw Error(ErrorKind::usage, fmt::format("optimizer '{}' is not built in this version", name), "use --optim adamw");
}

}  // namespace headroom
