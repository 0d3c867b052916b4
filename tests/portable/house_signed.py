"""What a house signed for the device of these tests; MicroPython cannot sign.

``tests/house/test_device_house.py`` signs the same with the house's own code.
"""

HOUSE_SECRET = b"house key of thirty-two bytes..."
NEW_SECRET = b"another key of 32 bytes, rotated"
UNTIL_S = 1800000000

HOUSE = bytes.fromhex(
    "b91e3805a99527ca543083fe955bbb8f285f99dd64a2d0a3d7eb34508f1fa867"
)
NEW_HOUSE = bytes.fromhex(
    "3816f38c1b7fa4a748e1c6e1266f8f6dcd412e48adf98f40ad89893ab5bf86e5"
)
# Of (house, SERIAL, count)
RESET_0 = bytes.fromhex(
    "823e1f909057295b856fe53400aca209215c70c74c8e31f2464ed1d6a2bdd7f8"
    "78e9ecbebe34cc275a1a3dc7256f3fa459ce4350f035ea25ae80be077549e009"
)
RESET_1 = bytes.fromhex(
    "b2ab5d1d9047d2284dd0ba943ea9b37622502312dd9c091803273301a6cf6a2e"
    "51e86c50c1d0264bb72ecd705f56a0f214559b95ee96956e9c8f68169bc59202"
)
# The same for another serial number, and by another house
RESET_OTHER = bytes.fromhex(
    "02a5921aef4c06c4d559b3166b488a34ecc6e11b4a10cc87062b67b61ee86046"
    "1499e000da2fab831a719e0f8e178fab1bacec8bca37af271fcc2af17f26c60a"
)
RESET_FOREIGN = bytes.fromhex(
    "f02b82297387e0f636d368f9d08bca77c566a9e1de8f1c8254ca6be524a178c7"
    "b0ef8dfb0836e865f4749fdd3fe2c7cca27e930e19ebee13f91b5098eae42c08"
)
# Number 1 from HOUSE to NEW_HOUSE, until UNTIL_S
ROTATION = bytes.fromhex(
    "bb41218a2f79c3fe709bad823e551fa81ab8b8d78238134dca1446385ebb6cdd"
    "fd7875be4f85a0ed9c2d4aed0af905f37897521d041706b4f3894619dda52a09"
)
