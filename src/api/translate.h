// Converts the engine's errors and plans to the types of the public API.
#pragma once

#include <utility>

#include "base/error.h"
#include "engine/refusal.h"
#include "headroom/engine.h"
#include "plan/plan.h"

namespace headroom::api {

[[noreturn]] inline void throw_error(const headroom::Error& error) {
  constexpr ErrorKind kinds[] = {ErrorKind::usage, ErrorKind::format, ErrorKind::does_not_fit, ErrorKind::run};
  throw Error(kinds[static_cast<size_t>(error.kind())], error.what(), error.remedy());
}

std::vector<Change> changes_of(const headroom::Plan& plan);
[[noreturn]] void throw_refusal(const headroom::Plan& plan);

// Runs `body` and turns the engine's errors into the API's. Other exceptions, such as those of callbacks, pass
// unchanged.
template <typename Body>
auto translating(const Body& body) {
  try {
    return body();
  } catch (const headroom::Error& error) {
    throw_error(error);
  } catch (const headroom::InternalError& error) {
    throw Error(ErrorKind::internal, error.what(), "this is a defect of headroom: please report it");
  }
}

}  // namespace headroom::api
