// Facts that a log's words add to a job without a configuration: sharding, adapters, precision.
#pragma once

#include <string>

#include "doctor/config/job.h"

namespace headroom::doctor {

// `log` is in lower case. Does not change what the job already states.
void take_facts_of_log(const std::string& log, Job& job);

// What a configuration leaves to other files and options: the stage of DeepSpeed, and the length of its rows.
void take_facts_beside_a_file(const std::string& log, Job& job);
// What a trainer that only the log names does by itself: LitGPT divides over all devices, and
// checkpoints every block where all weights train.
void take_facts_of_the_trainer(Job& job);

}  // namespace headroom::doctor
