// What the log says about a job without a configuration: its system, whether it serves or trains, its stage of ZeRO.
#pragma once

#include <string>
#include <string_view>

#include "doctor/config/job.h"
#include "doctor/remedies/remedy.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {

// `log` is in lower case in all of these functions.

// The system that a line of the log shows, else unknown.
System system_of_log(const std::string& log);
// The reinforcement learning library ("verl", "openrlhf") whose rollout server shares the devices with the training;
// empty for others.
std::string_view reinforcement_of(const std::string& log);
bool server_system(System system);  // a server of models
bool own_program(System system);    // no trainer and no server that doctor knows
// System, task and sharding of the program whose log `incident` holds. `message`: the one that stands for the failure,
// or null; `reinforcement`: as above; `told`: what its words tell.
Job job_of_log(const Case& incident, const Message* message, std::string_view reinforcement, ToldTask told);
// A job that says how it shards is left as it is.
void take_sharding_of_log(const std::string& log, Job& job);

}  // namespace headroom::doctor
