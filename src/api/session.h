// The data of a session.
#pragma once

#include <string>

#include "headroom/engine.h"

namespace headroom::api {

struct Session::Impl {
  std::string model;
  Options options;
};

}  // namespace headroom::api
