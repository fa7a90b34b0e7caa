# ruff: noqa: E501 (prose reads better unbroken)
"""Given and family names by culture, from which people who do not exist are made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Culture:
    women: tuple[str, ...]
    men: tuple[str, ...]
    families: tuple[str, ...]


def _culture(women: str, men: str, families: str) -> Culture:
    return Culture(tuple(women.split()), tuple(men.split()), tuple(families.split()))


CULTURES: dict[str, Culture] = {
    "english": _culture(
        "Alice Bridget Cora Dinah Eleanor Frances Georgina Harriet Imogen Joanna Kate Lydia Marian Nell Orla "
        "Philippa Rosalind Sally Tamsin Verity Winifred Gwen Hazel Isobel Maeve Stella Judith Leonie",
        "Alec Barnaby Callum Desmond Edwin Fergus Gareth Hugh Ivor Jonah Keith Leonard Malcolm Neville Oscar "
        "Patrick Quentin Rupert Stuart Tobias Vernon Wilfred Aidan Clive Dominic Giles Howard Ned",
        "Ackroyd Bexley Brandreth Calloway Carradine Dunstable Elphick Fairbrother Farrant Garside Hallam Hartnell "
        "Ingleby Jessop Kerridge Lathbury Loxton Marwood Merriden Nethercott Oakden Penhallow Pryce Quayle Redfern "
        "Sedgwick Stannard Thackray Tolland Underhill Vickery Wainscott Wetherall Wickstead Yardley Arkell Blenkin "
        "Crossland Dacre Eastham Gadsby Hollins Kirkbride Mossop Ormerod Pickersgill Rudge Sowerby Tansley Whitlam",
    ),
    "celtic": _culture(
        "Aoife Ciara Deirdre Eilidh Fiona Grainne Mairi Niamh Roisin Siobhan Sorcha Catriona Morag Sinead Una Kirsty",
        "Alasdair Brendan Cormac Declan Eoin Finlay Hamish Iain Lorcan Murdo Niall Padraig Ruairi Seamus Tadhg Ewan",
        "Breslin Carmody Devane Donnelly Fearon Gillespie Halloran Keane Lennox Macrae Mulvaney Nesbitt Ogilvie "
        "Rafferty Strachan Tierney Urquhart Kilbride Maguire Dalziel Finnerty Geraghty McAllan Tully",
    ),
    "german": _culture(
        "Anneliese Birgit Carla Dorothea Elke Franziska Greta Hanna Ilse Jutta Katrin Lotte Marlene Nadja Petra Silke "
        "Theresa Ulrike Verena Wiebke",
        "Axel Bernd Claus Dieter Emil Florian Gregor Henrik Jonas Konrad Lukas Matthias Norbert Oskar Ruben Stefan "
        "Till Ulrich Volker Wolf",
        "Ahlers Brandner Dressler Eberlein Feldkamp Gerlach Hartwig Imhoff Jansing Kaltenbach Lohmann Meinhardt Niedermann "
        "Oberholz Pfeil Querner Rademacher Seidler Thalmann Uhlig Vossberg Wendland Zeller Achterberg Buchwald Kestner "
        "Lindemuth Rautenberg Steinhoff Weidlich",
    ),
    "nordic": _culture(
        "Annika Birgitta Dagny Elin Frida Gunvor Helle Ingrid Johanne Karin Linnea Maren Nanna Ragnhild Signe Tove "
        "Ulla Ylva Astrid Sanna",
        "Anders Bjarne Egil Fredrik Gunnar Halvard Ivar Jens Kjell Lasse Mikkel Nils Olav Per Rasmus Sigurd Torben "
        "Ulf Viggo Aksel",
        "Aalund Bergstad Dalgaard Ekholm Falkner Granlund Haugen Isaksen Jernberg Kvamme Lindqvist Mortved Nyholm "
        "Ostberg Rosenvold Sandvik Thorsen Ulvestad Vinter Wikstrand Aspelund Brekke Hedlund Holmsen Krogstad Norling",
    ),
    "italian": _culture(
        "Agnese Bianca Chiara Donatella Elisa Fiorella Giulia Ilaria Lavinia Marta Noemi Ornella Paola Raffaella Silvia "
        "Teresa Valentina Viola",
        "Alessio Bruno Corrado Dario Edoardo Fabrizio Gaetano Ivano Lorenzo Marcello Nicola Ottavio Pietro Renato "
        "Sandro Tommaso Umberto Vito",
        "Albinoni Bertaglia Caprioli Dallavalle Ercolani Fantozzi Ghirardi Lanfranchi Mezzadri Nardulli Oriani Pellizza "
        "Quarenghi Ravasio Salviati Tarantelli Ubaldini Vecchiati Zanardelli Brambati Carnesecchi Donadeo Ferrucci "
        "Gualtieri Marchisello Santagata",
    ),
    "french": _culture(
        "Adele Blandine Camille Delphine Elodie Florence Garance Helene Ines Juliette Laure Mathilde Noemie Oceane "
        "Pauline Solene Therese Viviane",
        "Adrien Bastien Cedric Denis Etienne Fabien Gilles Hugo Jerome Laurent Marc Nicolas Olivier Pascal Quentin "
        "Remi Sylvain Thibault",
        "Aubertin Bonnefoy Chastain Delorme Estival Fontenay Garrigue Hauteville Jaquemart Lacombe Marchand Nouvel Ormesson "
        "Perrault Quesnel Rivoire Sauvage Tavernier Vaillant Beauclerc Carpentras Desrosiers Faucher Lavigne Montclar Roussel",
    ),
    "spanish": _culture(
        "Alba Beatriz Carmela Dolores Elvira Fabiola Graciela Ines Jimena Luciana Marisol Nuria Olga Pilar Rocio Soledad "
        "Teresa Ximena",
        "Alonso Baltasar Ciro Diego Esteban Felipe Gonzalo Hernan Ignacio Joaquin Leandro Mateo Nestor Octavio Pablo "
        "Ramiro Sergio Tomas",
        "Alcantara Barrientos Cifuentes Dominguez Echeverri Figueroa Galindo Hinojosa Iturbe Jaramillo Ledesma Montalvo "
        "Navarrete Olmedo Palacios Quintana Recabarren Saldivar Tejada Urrutia Valdivia Zambrano Arriaga Belmonte Cordero Villaseca",
    ),
    "portuguese": _culture(
        "Amalia Benedita Clarice Dulce Eunice Fernanda Gloria Helena Iracema Joana Leticia Marisa Natalia Odete Renata Tainara",
        "Afonso Bento Caetano Davi Eduardo Fabio Gustavo Heitor Inacio Jorge Luiz Murilo Nuno Otavio Rafael Thiago",
        "Abrantes Barcelos Cardoso Duarte Falcao Guimaraes Lacerda Magalhaes Noronha Pacheco Queiroz Rebelo Sampaio Taveira "
        "Valadares Xavier Bragança Coutinho Figueiredo Mesquita Peixoto Serrano",
    ),
    "slavic": _culture(
        "Alina Bozena Danuta Ewa Galina Halina Irena Jadwiga Katya Ludmila Milena Natasha Oksana Radka Svetlana Tamara "
        "Vesna Zofia",
        "Andrej Bogdan Cyril Dragan Filip Grigor Igor Janusz Kamil Lev Miroslav Nikola Oleg Pavel Radek Stanislav Tadeusz Zoran",
        "Antonov Bielecki Czarny Dobrev Filipov Gorski Hruby Ivanek Jankovic Kolar Lisowski Markovic Novotny Orlov Petrenko "
        "Radic Sobol Tomashuk Urban Vasilev Wolski Zelenka Bartosik Dvoran Krawiec Milosz Petkov Stojan",
    ),
    "arabic": _culture(
        "Amal Basma Dalia Farida Ghada Hanan Iman Jamila Khadija Layla Maha Nadia Rania Salma Thuraya Yasmin Zeina",
        "Adel Bashir Faisal Ghassan Hatem Idris Jalal Kamal Mahmoud Nabil Omar Rashid Sami Tariq Wael Yusuf Ziad",
        "Abbadi Barakat Darwish Fayed Ghanem Haddad Idrissi Jabari Khalidi Mansour Nasser Qasim Rahal Saadi Tamimi Zaghloul "
        "Bensalah Chaoui Hamdan Kassab Murad Othmani",
    ),
    "turkic": _culture(
        "Aigul Aylin Banu Defne Elif Feride Gulnara Inci Leyla Meral Nazli Saule Sevgi Zehra Dinara Selin",
        "Arman Baris Cemal Daniyar Emre Ferit Haluk Ilyas Kerem Levent Marat Nurlan Okan Rustam Selim Timur",
        "Aksoylu Baydar Cevik Demirel Erkin Gunduz Isbilen Karabek Nazarov Ozkan Sarper Temirov Uzun Yildiran Zhakupov "
        "Abenov Bolat Kaplan Seitkali Tuncay Altan Doganay Kurmanov Orhan Sadykov Yavuz",
    ),
    "south asian": _culture(
        "Aditi Bhavna Charu Deepa Gauri Ishani Jaya Kavita Lata Meera Nandini Padma Radhika Sunita Tara Usha Vidya Zara",
        "Ajay Bharat Dev Farhan Girish Harish Imran Jagdish Kiran Lalit Manoj Nikhil Pranav Rohan Sanjay Tushar Uday Vikram",
        "Acharya Banerji Chowdhary Deshpande Gokhale Hariharan Iyengar Joshi Kulkarni Mahajan Nambiar Pillai Qureshi Raghavan "
        "Sengupta Talwar Upadhyay Venkat Wadhwani Bhandari Dasgupta Ghoshal Mirza Rahmani",
    ),
    "japanese": _culture(
        "Akemi Chiyo Emi Fumiko Haruka Izumi Kaori Mariko Naomi Reiko Sachiko Tomoko Yoko Yumi Asuka Minami",
        "Akira Daichi Eiji Goro Hideo Isamu Jun Kenta Makoto Noboru Ryo Shinji Takeo Yasuo Yuto Satoru",
        "Aizawa Fujimori Hayama Ishida Kawabata Kuroda Matsuoka Minase Nagata Okabe Sakurai Shimizu Takenaka Ueno Watari "
        "Yamagishi Hoshino Kitano Morikawa Tsukada Amano Ebihara Hirose Ogata Tachibana Yoshimura",
    ),
    "chinese": _culture(
        "Fang Hui Jing Lan Lin Meiling Qing Rong Shu Ting Wen Xiaoyan Yan Ying Yue Zhen",
        "Bo Cheng Dawei Feng Guang Haoran Jian Kun Liang Ming Peng Rui Sheng Tao Wei Zhi",
        "Bai Cao Deng Fang Gao Huang Jiang Kong Liao Meng Ouyang Pan Qiu Shen Tang Wu Xie Yuan Zhong Zhuang Dong Fu Hou "
        "Luo Mao Peng Qian Su Yao Zou",
    ),
    "korean": _culture(
        "Areum Bora Daeun Eunji Hyejin Jiwon Minseo Nari Seoyeon Soomin Yuna Yeji Chaewon Gayoung Haneul Jimin Kyungmi Mina Sohee Yerin",
        "Byungho Dohyun Hyunwoo Jaemin Jinho Kangmin Minjae Sangwoo Seungho Taeyang Wonsik Youngsoo Changmin Donghae Gunwoo Inho Jongsu Kihoon Sungmin Yongjae",
        "Ahn Bae Choi Goh Han Hwang Jang Jeon Kwon Moon Nam Oh Ryu Seo Shin Yoon Baek Cha Gwon Hong Ko Maeng Noh "
        "Pyo Sohn Won",
    ),
    "malay": _culture(
        "Aisyah Citra Dewi Farah Indah Kartika Lestari Melati Nurul Putri Ratna Sari Tuti Wulan Anggun Hana Laila Puspa",
        "Adi Budi Dimas Eko Fajar Hasan Iskandar Joko Rahmat Surya Teguh Wahyu Yusof Zulkifli Bayu Hafiz Rizal Slamet",
        "Anggoro Basri Darmawan Effendi Gunawan Halim Kusuma Lubis Mahendra Nasution Pranoto Rahim Santoso Tanaga Utomo Wijaya "
        "Hidayat Marzuki Nugroho Pohan Setiawan Yahya",
    ),
    "west african": _culture(
        "Abena Adaeze Aminata Efua Fatou Ifeoma Kadiatou Mariama Ngozi Oluchi Sefi Temi Uzoma Yaa Adjoa Folake",
        "Adebayo Babacar Chidi Emeka Femi Ibrahima Kofi Kwame Lamine Obinna Ousmane Sekou Tunde Uche Yaw Mamadou",
        "Abiodun Addo Bamgbose Ceesay Danquah Diop Ekwueme Fofana Gyamfi Ibekwe Jalloh Kouyate Mensah Nwankwo Okonjo Owusu "
        "Quartey Sanogo Sowah Toure Udeh Yeboah",
    ),
    "east african": _culture(
        "Achieng Amina Eshe Hiwot Imani Jelani Kamaria Makena Nyambura Rehema Sanaa Selam Wanjiru Zawadi Thandiwe Nomvula",
        "Abel Barasa Dawit Ezekiel Hamisi Jabari Kamau Kiprono Lwazi Mulugeta Njoroge Omari Sipho Tesfaye Themba Wekesa",
        "Abera Chege Dlamini Gathoni Haile Kariuki Kibet Langat Mutua Ndlovu Nkosi Ochieng Rotich Sithole Tadesse "
        "Wambua Kirui Mwangi Mokoena Njenga",
    ),
}
