// The data of a session.
#pragma once

#include <string>
#include <utility>

#include "api/kept_generator.h"
#include "headroom/engine.h"

namespace headroom::api {

struct Session::Impl {
  Impl(std::string path, Options shared) : model(std::move(path)), options(std::move(shared)) {}

  std::string model;
  Options options;
  mutable KeptGenerator kept;
};

}  // namespace headroom::api
