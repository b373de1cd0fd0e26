#include "pipeline/fleet.h"

#include <gtest/gtest.h>

#include <map>

#include "pipeline/reservation.h"

namespace baton::pipeline {
namespace {

RegisteredWorker worker(std::int32_t index, std::vector<std::string> offered) {
  RegisteredWorker one;
  one.registration.index = index;
  one.registration.session = std::to_string(index);
  one.registration.capabilities = std::move(offered);
  return one;
}

const Lane kAny{.capabilities = required_of_workers({})};
const Lane kRender{.capabilities = required_of_workers({"gpu"})};

// P8: whoever is there for anything takes first what the others of his kind cannot do.
TEST(AFleet, CountsNobodyWhoIsReservedWhenItSaysWhatIsScarce) {
  Fleet fleet;
  fleet.update({worker(1, {"gpu"}), worker(2, with_unreserved({"gpu"})), worker(3, with_unreserved({}))}, {});
  EXPECT_FALSE(fleet.is_scarce(kAny));
  EXPECT_TRUE(fleet.is_scarce(kRender));
}

TEST(AFleet, TellsOfAllWhoComeClosest) {  // P8
  Fleet fleet;
  EXPECT_EQ(fleet.closest(kRender), "");
  fleet.update({worker(1, with_unreserved({}))}, {});
  EXPECT_EQ(fleet.closest(kRender), "worker 1 lacks gpu");
  fleet.update({worker(1, with_unreserved({})), worker(2, with_unreserved({"disk"}))}, {});
  EXPECT_EQ(fleet.closest(kRender), "every worker lacks gpu");
  const Lane both{.capabilities = required_of_workers({"disk", "gpu"})};
  EXPECT_EQ(fleet.closest(both), "worker 2 lacks gpu");
  fleet.update({worker(1, with_unreserved({})), worker(2, with_unreserved({"disk"})),
                worker(3, with_unreserved({"disk"}))},
               {});
  EXPECT_EQ(fleet.closest(both), "worker 2, worker 3 lack gpu");
}

TEST(AFleet, HasRoomAtReservedWorkersForWhatNamesThemAlone) {  // P8
  Fleet fleet;
  fleet.update({worker(1, {"gpu"}), worker(2, with_unreserved({}))}, {});
  EXPECT_TRUE(fleet.has_room(kAny, 1));
  fleet.handed_out(kAny);
  EXPECT_FALSE(fleet.has_room(kAny, 1));
  EXPECT_TRUE(fleet.has_room(kRender, 1));
}

TEST(AFleet, HasTimeOnlyWhereAPlaceIsFreeForCertain) {  // P8
  Fleet fleet;
  RegisteredWorker plain = worker(1, with_unreserved({"disk"})), gifted = worker(2, with_unreserved({"gpu"}));
  const Lane store{.capabilities = required_of_workers({"disk"})};
  const std::map<std::string, Lane> out = {{"any", kAny}, {"render", kRender}};
  const auto has_time = [&] {
    fleet.update({plain, gifted}, {});
    return fleet.has_time(kRender, [&](const std::string& module) {
      const auto one = out.find(module);
      return one == out.end() ? nullptr : &one->second;
    });
  };
  EXPECT_TRUE(has_time());
  fleet.handed_out(store), fleet.handed_out(store);
  EXPECT_TRUE(has_time()) << "those wait for another";
  fleet.handed_out(kAny);
  EXPECT_FALSE(has_time()) << "it may be on its way to the only one who can";
  plain.current_modules = {"any"};
  EXPECT_TRUE(has_time());
  fleet.handed_out(kRender);
  gifted.current_modules = {"render"};
  EXPECT_FALSE(has_time());
  fleet.came_back(kRender);
  gifted.current_modules = {"over"};
  EXPECT_TRUE(has_time()) << "its last word is older than what is known";
}

TEST(AReservation, IsAboutWhatMachinesDoNotHaveByThemselves) {  // P8
  EXPECT_TRUE(is_reserved({"gpu", "linux"}));
  EXPECT_FALSE(is_reserved(with_unreserved({"gpu", "linux"})));
  EXPECT_EQ(without_unreserved(with_unreserved({"gpu"})), (std::vector<std::string>{"gpu"}));
  EXPECT_EQ(required_of_workers({"gpu", "linux"}), (std::vector<std::string>{"gpu", "linux"}));
  EXPECT_EQ(required_of_workers({"linux"}), with_unreserved({"linux"}));
  EXPECT_EQ(required_of_workers({}), with_unreserved({}));
}

}  // namespace
}  // namespace baton::pipeline
