"""Known answers of NIST's Cryptographic Algorithm Validation Program for the generator, as data."""

# NIST CAVP, drbgtestvectors, HMAC_DRBG [SHA-256]: entropy input, nonce, personalization string, entropy input
# of the reseed, additional input of the two generate calls, the 128 bytes that the second one returns.
CAVP = (
    # drbgvectors_no_reseed, PersonalizationStringLen 0, AdditionalInputLen 0, COUNT 0, 1, 2
    (
        "ca851911349384bffe89de1cbdc46e6831e44d34a4fb935ee285dd14b71a7488",
        "659ba96c601dc69fc902940805ec0ca8",
        "", "", "", "",
        "e528e9abf2dece54d47c7e75e5fe302149f817ea9fb4bee6f4199697d04d5b89"
        "d54fbb978a15b5c443c9ec21036d2460b6f73ebad0dc2aba6e624abf07745bc1"
        "07694bb7547bb0995f70de25d6b29e2d3011bb19d27676c07162c8b5ccde0668"
        "961df86803482cb37ed6d5c0bb8d50cf1f50d476aa0458bdaba806f48be9dcb8",
    ),
    (
        "79737479ba4e7642a221fcfd1b820b134e9e3540a35bb48ffae29c20f5418ea3",
        "3593259c092bef4129bc2c6c9e19f343",
        "", "", "", "",
        "cf5ad5984f9e43917aa9087380dac46e410ddc8a7731859c84e9d0f31bd43655"
        "b924159413e2293b17610f211e09f770f172b8fb693a35b85d3b9e5e63b1dc25"
        "2ac0e115002e9bedfb4b5b6fd43f33b8e0eafb2d072e1a6fee1f159df9b51e6c"
        "8da737e60d5032dd30544ec51558c6f080bdbdab1de8a939e961e06b5f1aca37",
    ),
    (
        "b340907445b97a8b589264de4a17c0bea11bb53ad72f9f33297f05d2879d898d",
        "65cb27735d83c0708f72684ea58f7ee5",
        "", "", "", "",
        "75183aaaf3574bc68003352ad655d0e9ce9dd17552723b47fab0e84ef903694a"
        "32987eeddbdc48efd24195dbdac8a46ba2d972f5808f23a869e71343140361f5"
        "8b243e62722088fe10a98e43372d252b144e00c89c215a76a121734bdc485486"
        "f65c0b16b8963524a3a70e6f38f169c12f6cbdd169dd48fe4421a235847a23ff",
    ),
    # drbgvectors_no_reseed, PersonalizationStringLen 256, AdditionalInputLen 0, COUNT 0, 1
    (
        "5cacc68165a2e2ee20812f35ec73a79dbf30fd475476ac0c44fc6174cdac2b55",
        "6f885496c1e63af620becd9e71ecb824",
        "e72dd8590d4ed5295515c35ed6199e9d211b8f069b3058caa6670b96ef1208d0", "", "", "",
        "f1012cf543f94533df27fedfbf58e5b79a3dc517a9c402bdbfc9a0c0f721f9d5"
        "3faf4aafdc4b8f7a1b580fcaa52338d4bd95f58966a243cdcd3f446ed4bc546d"
        "9f607b190dd69954450d16cd0e2d6437067d8b44d19a6af7a7cfa8794e5fbd72"
        "8e8fb2f2e8db5dd4ff1aa275f35886098e80ff844886060da8b1e7137846b23b",
    ),
    (
        "8df013b4d103523073917ddf6a869793059e9943fc8654549e7ab22f7c29f122",
        "da2625af2ddd4abcce3cf4fa4659d84e",
        "b571e66d7c338bc07b76ad3757bb2f9452bf7e07437ae8581ce7bc7c3ac651a9", "", "", "",
        "b91cba4cc84fa25df8610b81b641402768a2097234932e37d590b1154cbd23f9"
        "7452e310e291c45146147f0da2d81761fe90fba64f94419c0f662b28c1ed94da"
        "487bb7e73eec798fbcf981b791d1be4f177a8907aa3c401643a5b62b87b89d66"
        "b3a60e40d4a8e4e9d82af6d2700e6f535cdb51f75c321729103741030ccc3a56",
    ),
    # drbgvectors_no_reseed, PersonalizationStringLen 256, AdditionalInputLen 256, COUNT 0
    (
        "5d3286bc53a258a53ba781e2c4dcd79a790e43bbe0e89fb3eed39086be34174b",
        "c5422294b7318952ace7055ab7570abf",
        "2dba094d008e150d51c4135bb2f03dcde9cbf3468a12908a1b025c120c985b9d", "",
        "793a7ef8f6f0482beac542bb785c10f8b7b406a4de92667ab168ecc2cf7573c6",
        "2238cdb4e23d629fe0c2a83dd8d5144ce1a6229ef41dabe2a99ff722e510b530",
        "d04678198ae7e1aeb435b45291458ffde0891560748b43330eaf866b5a6385e7"
        "4c6fa5a5a44bdb284d436e98d244018d6acedcdfa2e9f499d8089e4db86ae89a"
        "6ab2d19cb705e2f048f97fb597f04106a1fa6a1416ad3d859118e079a0c319eb"
        "95686f4cbcce3b5101c7a0b010ef029c4ef6d06cdfac97efb9773891688c37cf",
    ),
    # drbgvectors_pr_false, PersonalizationStringLen 0, AdditionalInputLen 0, COUNT 0, 1
    (
        "06032cd5eed33f39265f49ecb142c511da9aff2af71203bffaf34a9ca5bd9c0d",
        "0e66f71edc43e42a45ad3c6fc6cdc4df",
        "", "01920a4e669ed3a85ae8a33b35a74ad7fb2a6bb4cf395ce00334a9c9a5a5d552", "", "",
        "76fc79fe9b50beccc991a11b5635783a83536add03c157fb30645e611c2898bb"
        "2b1bc215000209208cd506cb28da2a51bdb03826aaf2bd2335d576d519160842"
        "e7158ad0949d1a9ec3e66ea1b1a064b005de914eac2e9d4f2d72a8616a802254"
        "22918250ff66a41bd2f864a6a38cc5b6499dc43f7f2bd09e1e0f8f5885935124",
    ),
    (
        "aadcf337788bb8ac01976640726bc51635d417777fe6939eded9ccc8a378c76a",
        "9ccc9d80c89ac55a8cfe0f99942f5a4d",
        "", "03a57792547e0c98ea1776e4ba80c007346296a56a270a35fd9ea2845c7e81e2", "", "",
        "17d09f40a43771f4a2f0db327df637dea972bfff30c98ebc8842dc7a9e3d681c"
        "61902f71bffaf5093607fbfba9674a70d048e562ee88f027f630a78522ec6f70"
        "6bb44ae130e05c8d7eac668bf6980d99b4c0242946452399cb032cc6f9fd9628"
        "4709bd2fa565b9eb9f2004be6c9ea9ff9128c3f93b60dc30c5fc8587a10de68c",
    ),
)  # fmt: skip
