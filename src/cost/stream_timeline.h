// A program on the clocks of the runtime's streams.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "cost/profile.h"
#include "ir/graph.h"

namespace headroom {

// The tier below the device that holds the values of a role.
using TierOf = std::function<Tier(Role)>;

// The kernels of a program with their seconds, and its copies, whose seconds depend on the tier that holds what they
// carry. Copies run beside the kernels, as the runtime orders them: for each tier one stream into the device's memory
// and one out of it. A copy starts when its stream is free and all earlier kernels are done; a wait takes the time that
// the copy still needs.
class StreamTimeline {
 public:
  // Every loop of the program makes `trips` trips; nodes may not nest loops deeper than one. Keeps no reference.
  StreamTimeline(const Graph& graph, RegionId program, const Bindings& bindings, int64_t trips, const Profile& profile);

  // Seconds of one run with everything where the graph says, or with what lies below the device in other tiers there.
  double seconds(const TierOf& tier_of = {}) const;

 private:
  struct Copy {
    Role role = Role::activation;
    Tier tier = Tier::host;           // below the device, as the graph says
    bool out = false;                 // of the device's memory
    std::array<double, 3> seconds{};  // by the tier below the device
  };
  // Kernels of some seconds, or a copy or loop of some index.
  struct Event {
    enum Kind : uint8_t { kernels, start, wait, loop } kind = kernels;
    double seconds = 0;
    size_t index = 0;
  };

  void add_kernel(double seconds);
  void add_copy(const Graph& graph, const Node& node, const OpCall& call, const Profile& profile);

  int64_t trips_ = 1;
  std::vector<Event> events_;
  std::vector<Copy> copies_;
  std::vector<StreamTimeline> loops_;  // bodies
};

// StreamTimeline::seconds() of a program as its graph is.
double predict_program(const Graph& graph, RegionId program, const Bindings& bindings, int64_t trips,
                       const Profile& profile);

}  // namespace headroom
