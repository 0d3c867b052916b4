"""The table of commands: which method executes which command of the wire."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_firmware.controller import Controller
    from sabot_protocol.codec import Values


def command_table(controller: "Controller") -> "dict[str, Callable[..., Values]]":
    """The handler of each command, by the command's name.

    A handler takes the fields of the request and returns those of the answer. It raises Refusal, and then
    nothing has happened.
    """
    decks, shuffles, dealing = controller.deck_commands, controller.shuffle_commands, controller.dealing
    machine, service = controller.machine_commands, controller.service
    return {
        "register_deck": decks.register_deck,
        "remove_deck": decks.remove_deck,
        "play_one_deck": decks.play_one_deck,
        "set_game": decks.set_game,
        "game": decks.game,
        "decks": decks.decks,
        "shuffle": shuffles.begin,
        "commit_shuffle": shuffles.commit,
        "shuffle_with": shuffles.begin_with,
        "reveal_shuffle": shuffles.reveal,
        "shuffle_slots": shuffles.slots,
        "rng_samples": shuffles.samples,
        "open_round": dealing.open_round,
        "simulate_round": dealing.simulate_round,
        "close_bets": dealing.close_bets,
        "dispense_stack": dealing.dispense_stack,
        "draw_cards": dealing.draw_cards,
        "burn_cards": dealing.burn_cards,
        "end_round": dealing.end_round,
        "void_round": dealing.void_round,
        "purge": dealing.purge,
        "path_inspected": dealing.path_inspected,
        "deliver_deck": dealing.deliver_deck,
        "load_shoe": dealing.load_shoe,
        "end_shoe": dealing.end_shoe,
        "reveal_round": dealing.reveal_round,
        "faces": dealing.faces,
        "stop": machine.stop,
        "clear_fault": machine.clear_fault,
        "locate": machine.locate,
        "call_floor": machine.call_floor,
        "whereabouts": machine.whereabouts,
        "last_round": machine.last_round,
        "log": machine.log,
        "evidence": machine.evidence,
        "wear": machine.wear,
        "mark_out_of_order": service.mark_out_of_order,
        "return_to_service": service.return_to_service,
        "service_mode": service.service_mode,
        "self_test": service.self_test,
        "jog": service.jog,
        "calibrate": service.calibrate,
        "calibration": service.calibration,
        "sensors": service.sensors,
        "empty_machine": service.empty_machine,
    }
